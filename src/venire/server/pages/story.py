"""The story of an item in words and a picture: what happened, and how the belief moved.

Everything comes from the item and its explanation, which anybody can get from the API; here it is
put into sentences, in the order of time, and into the points of a chart.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from venire.server.messages import (
    Belief,
    Enough,
    Explanation,
    Given,
    ItemView,
    LabelView,
    RepeatView,
    RouteView,
)
from venire.server.pages.rendering import percent

#: How many classes the picture shows: those that are most probable at the end.
CURVES: Final = 4

#: Probabilities that differ by more are two.
SAME: Final = 1e-6

#: The size of the picture, and the margins for numbers and names.
WIDTH, HEIGHT, LEFT, BOTTOM = 720, 220, 44, 26


class Line(NamedTuple):
    """A sentence of the story: when, what kind of thing happened, and what."""

    at: float
    kind: str
    text: str


class Curve(NamedTuple):
    """The probability of a class over time: its name, its lines, where it ends if that is known."""

    name: str
    lines: tuple[str, ...]
    last: float | None


class Chart(NamedTuple):
    """The picture: curves, the names below, and one sentence for those who cannot see it."""

    curves: tuple[Curve, ...]
    ticks: tuple[tuple[float, str], ...]
    summary: str
    width: int = WIDTH
    height: int = HEIGHT


def story_of(
    item: ItemView, told: Explanation, costs: Sequence[Mapping[str, Any]] = ()
) -> list[Line]:
    """What happened to an item, the earliest first; `costs` are those of errors when it left."""
    after = _after_labels(told.beliefs)
    lines = [Line(item.arrived_at, "arrived", _arrived(item))]
    asked = set[str]()
    for given in told.given:
        lines.append(Line(given.at, "asked", _asked(given, given.labeler in asked)))
        asked.add(given.labeler)
    lines += [
        Line(label.at, "late" if label.late else "label", _labelled(label, after))
        for label in item.labels
    ]
    lines += [Line(b.at, "learned", _learned(b)) for b in told.beliefs if b.why == "learned"]
    if told.enough is not None:
        lines.append(Line(told.enough.at, "enough", _enough(told.enough)))
    if item.exit is not None:
        lines.append(Line(item.exit.at, "left", _left(item, told) + _by_costs(item, told, costs)))
    lines += [Line(again.at, "again", _again(again)) for again in item.repeats]
    lines += [Line(route.at, "routed", _came(route)) for route in item.routed_from]
    lines += [Line(route.settled_at or route.at, "routed", _routed(route)) for route in item.routed]
    for revision in item.revisions:
        said = f"The verdict was revised from {revision.before} to {revision.verdict}"
        why = "by gold" if revision.confidence == 1 else f"at {percent(revision.confidence)}"
        lines.append(Line(revision.at, "revised", f"{said}, {why}."))
    told_at = {revision.at for revision in item.revisions}
    for at, label in _gold(item).items():
        if at not in told_at:
            lines.append(Line(at, "gold", f"Somebody trusted said {label}: that is certain."))
    order = ["arrived", "asked", "learned", "label", "enough", "gold", "left", "routed", "late"]
    order += ["again", "revised"]
    return sorted(lines, key=lambda line: (line.at, order.index(line.kind)))


def _arrived(item: ItemView) -> str:
    only = "" if item.eligible is None else f" Only {', '.join(item.eligible)} may label it."
    barred = f" {', '.join(item.excluded)} may not label it." if item.excluded else ""
    return f"It arrived in slot {item.arrived_slot}, worth {item.weight:g}.{only}{barred}"


def _asked(given: Given, again: bool) -> str:
    text = f"{given.labeler} was asked"
    if again:
        text += " again: the work had been given back, or no label had come in time"
    if given.gain is not None and given.gain > 0:
        text += f", because a label was worth {given.gain:.3g}"
    return f"{text}{_instead(given)}."


def _instead(given: Given) -> str:
    """What the labeler was not asked, and why it was not that."""
    others = [(one.gain, one) for one in given.alternatives if one.gain is not None]
    if not others or given.gain is None or given.gain <= 0:
        return ""
    gain, best = others[0]
    if gain <= given.gain:
        return "" if gain <= 0 else f"; the next best was {best.item}, worth {gain:.3g}"
    if best.given_to is not None and best.given_to != given.labeler:
        return f"; {best.item}, worth {gain:.3g}, went to {best.given_to} at the same time"
    return (
        f"; a label of {best.item} alone was worth more, {gain:.3g}, but the policy looks at more "
        "than the next label"
    )


def _labelled(label: LabelView, after: dict[str, tuple[Belief, Belief]]) -> str:
    text = f"{label.labeler} said {label.said}"
    if label.confidence is not None:
        text += f", {percent(label.confidence)} sure,"
    if label.lead_seconds is not None:
        text += f" after {label.lead_seconds:.1f} s"
    why = "" if label.rationale is None else f" It gave as its reason: “{label.rationale}”"
    if label.late:
        return f"{text}, when the item had left.{why}"
    if label.labeler in after:
        before, now = after[label.labeler]
        was, became = before.posterior[label.said], now.posterior[label.said]
        moved = "rose" if became > was else "fell"
        text += f": the belief in {label.said} {moved} from {percent(was)} to {percent(became)}"
    return f"{text}.{why}"


def _learned(belief: Belief) -> str:
    name, p = _most(belief.posterior)
    return (
        "The stream learned more about its labelers: by the same labels, "
        f"{name} is now {percent(p)}."
    )


def _again(told: RepeatView) -> str:
    """What somebody said who was asked again."""
    as_before = "as before" if told.said == told.before else f"where it had said {told.before}"
    return (
        f"{told.labeler} was asked about it again and said {told.said}, {as_before}; that is no "
        "label (repeat_share)."
    )


def _came(route: RouteView) -> str:
    return f"It came from stream {route.stream}, by its verdict there (routes)."


def _routed(route: RouteView) -> str:
    """Where its verdict sent it."""
    text = f"Its verdict sends it to {route.kind} {route.target} (routes)"
    if route.fault is not None:
        return f"{text}, where it could not go: {route.fault}."
    if route.settled_at is None:
        return f"{text}: it is on its way."
    return f"{text}, where it arrived." if route.kind == "stream" else f"{text}."


def _enough(told: Enough) -> str:
    return (
        f"The word of {told.labeler} is enough for {told.said} (leave_on): nobody else is asked, "
        "and the item leaves at the end of the slot."
    )


def _left(item: ItemView, told: Explanation) -> str:
    exit = item.exit
    assert exit is not None
    if exit.verdict is None:
        return f"It left without a verdict: {told.why}."
    many = "one label" if exit.labels == 1 else f"{exit.labels} labels"
    return (
        f"It left as {exit.verdict} with {many}, confidence {percent(exit.confidence)}, because "
        f"{told.why}."
    )


def _by_costs(item: ItemView, told: Explanation, costs: Sequence[Mapping[str, Any]]) -> str:
    """What the costs had to do with the verdict, by the probabilities that it left with."""
    exit, beliefs = item.exit, [b for b in told.beliefs if item.exit and b.at <= item.exit.at]
    if not costs or exit is None or exit.verdict is None or not beliefs or exit.confidence == 1:
        return ""
    shares = beliefs[-1].posterior
    if abs(shares[exit.verdict] - exit.confidence) > SAME:
        return ""
    prices = {(one["truth"], one["verdict"]): float(one["cost"]) for one in costs}
    expected = {
        said: sum(
            p * prices.get((truth, said), 1.0) for truth, p in shares.items() if truth != said
        )
        for said in shares
    }
    cheapest = min(expected, key=lambda said: expected[said])
    if expected[exit.verdict] <= expected[cheapest] + 1e-9:
        listed = ", ".join(
            f"{expected[said]:.2g} as {said}" for said in sorted(expected, key=expected.__getitem__)
        )
        return f" What its errors would cost on average: {listed}."
    return (
        f" By what errors cost it would be {cheapest}, but costs do not count between classes of "
        "which too few clear items have been seen, about ten of each: until then it is the most "
        "probable class."
    )


def _gold(item: ItemView) -> dict[float, str]:
    """What somebody trusted said, by when."""
    gold = item.gold_said
    return {one.at: one.label for one in gold.earlier} | {gold.at: gold.label} if gold else {}


def _moves(item: ItemView, beliefs: Sequence[Belief]) -> list[tuple[float, str, dict[str, float]]]:
    """When the belief moved, why, and to what: by the log, and by gold and revisions since.

    Of a revision the store keeps the probability of its verdict alone; of two classes that is all.
    """
    moves = [(b.at, b.labeler or b.why, b.posterior) for b in beliefs]
    if not moves or item.exit is None:
        return moves
    classes, gold = tuple(moves[0][2]), _gold(item)
    for at, label in gold.items():
        certain = {name: float(name == label) for name in classes}
        moves.append((max(at, item.exit.at), "gold", certain))
    for one in item.revisions:
        if one.verdict is not None and one.at not in gold:
            rest = dict.fromkeys(classes if len(classes) == 2 else (), 1 - one.confidence)
            moves.append((one.at, "revised", rest | {one.verdict: one.confidence}))
    return sorted(moves, key=lambda move: move[0])


def chart_of(item: ItemView, beliefs: Sequence[Belief]) -> Chart | None:
    """The picture of how the belief moved until today; None if it never did."""
    moves = _moves(item, beliefs)
    if len(moves) < 2:
        return None
    lately = {name: p for _, _, shares in moves for name, p in shares.items()}
    first, last = moves[0][2], moves[-1][2]
    names = sorted(lately, key=lambda name: (name not in last, -lately[name]))[:CURVES]
    step = (WIDTH - LEFT) / len(moves)
    places = [LEFT + step * k for k in range(len(moves))]
    curves = tuple(
        Curve(name, _lines(places, [shares.get(name) for _, _, shares in moves]), last.get(name))
        for name in names
    )
    ticks = tuple((x, why) for x, (_, why, _) in zip(places, moves, strict=True))
    (begun, p), (ended, q) = _most(first), _most(last)
    return Chart(
        curves,
        ticks,
        f"The belief began with {begun} at {percent(p)} and ended with {ended} at {percent(q)}, "
        f"in {len(moves)} steps.",
    )


def _lines(places: Sequence[float], values: Sequence[float | None]) -> tuple[str, ...]:
    """Lines that stay at each value until the next; none where the value is not known."""
    found: list[str] = []
    before = None
    for x, end, p in zip(places, [*places[1:], WIDTH], values, strict=True):
        if p is not None:
            y = f"{10 + (1 - p) * (HEIGHT - BOTTOM - 10):.1f}"
            line = "" if before is None else f"{found.pop()} "
            found.append(f"{line}{x:.1f},{y} {end:.1f},{y}")
        before = p
    return tuple(found)


def _after_labels(beliefs: Sequence[Belief]) -> dict[str, tuple[Belief, Belief]]:
    """For each labeler, the beliefs before and after its label."""
    pairs = itertools.pairwise(beliefs)
    return {now.labeler: (before, now) for before, now in pairs if now.labeler is not None}


def _most(posterior: dict[str, float]) -> tuple[str, float]:
    return max(posterior.items(), key=lambda pair: pair[1])
