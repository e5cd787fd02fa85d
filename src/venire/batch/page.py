"""The report of a batch as one HTML file, which opens offline."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import Any, Final

STYLE: Final = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem;
  color: #1b1b1b; background: #fff }
h1 { font-size: 1.5rem } h2 { font-size: 1.15rem; margin-top: 2rem }
table { border-collapse: collapse; width: 100% } td, th { padding: .3rem .5rem; text-align: right;
  border-bottom: 1px solid #ddd } td { white-space: nowrap }
td:first-child, th:first-child { text-align: left }
.facts { display: flex; flex-wrap: wrap; gap: 2rem } .facts b { display: block; font-size: 1.4rem }
svg { width: 100%; height: auto } .scroll { overflow-x: auto } .note { color: #555 }
"""

#: Why items got no further label, in words.
ENDS = {
    "confident": "sure enough",
    "exhausted": "labelled by all who may",
    "budget": "no budget left",
    "no_gain": "another label not worth its price",
    "undecided": "below the target, nobody left to ask",
}

#: The size of the chart, and the room for its axes.
WIDE, HIGH, LEFT, LOW, RIGHT = 720.0, 320.0, 56.0, 44.0, 28.0

BLUE, RED = "#0072B2", "#D55E00"


def page_of(record: dict[str, Any], more: Iterable[str] = ()) -> str:
    """The page of a report, as `Labelled.record` makes it: facts, the curve, the labelers.

    `more` is HTML that comes after these.
    """
    return "\n".join(_page(record, more))


def _page(record: dict[str, Any], more: Iterable[str]) -> Iterator[str]:
    yield '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<title>Labelled batch</title>\n<style>{STYLE}</style>\n</head>\n<body>"
    yield f"<h1>{record['items']:,} items labelled</h1>"
    yield '<div class="facts">'
    for name, value in _facts(record):
        yield f"<div><b>{escape(value)}</b>{escape(name)}</div>"
    yield "</div>"
    yield "<h2>Accuracy against spend</h2>"
    yield from _chart(record["curve"])
    yield (
        '<p class="note">Expected: the mean confidence of the verdicts. Right: the share of right '
        "verdicts, where the truth was given.</p>"
    )
    yield "<h2>Labelers</h2>"
    yield from (f"<p>{escape(line)}</p>" for line in record["relations"])
    if "expert" in record:
        told = "{labels:,} labels for {spent:,.6g}, on the least sure items; {changed:,} verdicts"
        yield f"<p>{escape(str(record['expert']['id']))}, who is trusted: "
        yield told.format_map(record["expert"]) + " were others.</p>"
    yield from _labelers(record["labelers"])
    yield from more
    yield from _explained(record.get("explained", ()))
    yield "</body>\n</html>"


def _facts(record: dict[str, Any]) -> Iterator[tuple[str, str]]:
    budget = record["budget"] or {}
    money = f" of {budget['money']:,.6g}" if budget.get("money") is not None else ""
    most = f" of {budget['labels']:,}" if budget.get("labels") is not None else ""
    yield "spent", f"{record['spent']:,.6g}{money}"
    yield f"labels, {record['labels_per_item']:.2f} an item", f"{record['labels']:,}{most}"
    yield "expected accuracy", _percent(record["expected_accuracy"])
    if record["accuracy"] is not None:
        yield "right verdicts", _percent(record["accuracy"])
    yield "sure items", f"{record['sure']:,}"
    for why, count in record["reasons"].items():
        yield f"ended: {ENDS.get(why, why)}", f"{count:,}"


def _labelers(labelers: Sequence[dict[str, Any]]) -> Iterator[str]:
    told = any(one["right_without"] is not None for one in labelers)
    known = any(one["known"] for one in labelers)
    heads = ["labeler", "labels", "spent", "price", "skill", "90 % interval"]
    heads += ["right on gold"] if known else []
    heads += ["verdicts changed without"]
    heads += ["right verdicts without"] if told else []
    yield '<div class="scroll"><table><thead><tr>'
    yield "".join(f"<th>{escape(h)}</th>" for h in heads) + "</tr></thead><tbody>"
    for one in sorted(labelers, key=lambda x: (-x["spent"], -x["labels"])):
        cells = [
            escape(str(one["id"])),
            f"{one['labels']:,}",
            f"{one['spent']:,.6g}",
            f"{one['price']:.6g}",
            _percent(one["skill"]),
            f"{_percent(one['low'])} to {_percent(one['high'])}",
        ]
        cells += [f"{one['right']:,} of {one['known']:,}"] if known else []
        cells += ["" if one["changed"] is None else f"{one['changed']:,}"]
        cells += [_percent(one["right_without"])] if told else []
        yield "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"
    yield "</tbody></table></div>"
    yield (
        '<p class="note">Verdicts changed without: how many verdicts would be others if the labels '
        "of this labeler were left out and the skills learned again; nobody else is asked in their "
        "place. Skill: the share of the labels that are right; right on gold: of those on items "
        "with gold.</p>"
    )


def _explained(items: Sequence[dict[str, Any]]) -> Iterator[str]:
    """What labelers said of the least sure items, and why."""
    if items:
        yield "<h2>Why</h2>"
        yield f'<p class="note">What was said of the {len(items):,} least sure items.</p>'
    for one in items:
        sure = _percent(one["confidence"])
        yield f"<h3>{escape(str(one['item']))}: {escape(str(one['label']))}, {sure}</h3><ul>"
        for vote in one["votes"]:
            said = f"{vote['labeler']}: {vote['label']}"
            why = f" {escape(vote['rationale'])}" if vote["rationale"] else ""
            yield f"<li><b>{escape(said)}</b>{why}</li>"
        yield "</ul>"


def _chart(curve: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Lines of expected and true accuracy, as SVG."""
    by_money = curve[-1]["spent"] > 0
    x = [p["spent"] if by_money else float(p["labels"]) for p in curve]
    lines = [("expected", BLUE, [p["expected"] for p in curve])]
    if all(p["right"] is not None for p in curve):
        lines.append(("right", RED, [p["right"] for p in curve]))
    values = [v for *_, line in lines for v in line if v == v]
    low = max(0.0, int(min(values, default=0.0) * 20) / 20)
    right, step = _axis(max(x) or 1.0)
    top = 1.0
    yield f'<svg viewBox="0 0 {WIDE:g} {HIGH:g}" role="img" aria-label="Accuracy against spend">'
    for k in range(6):
        level = low + (top - low) * k / 5
        y = _y(level, low)
        yield f'<line x1="{LEFT}" x2="{WIDE - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#e5e5e5"/>'
        yield f'<text x="{LEFT - 6}" y="{y + 4:.1f}" font-size="12" text-anchor="end">'
        yield f"{100 * level:.0f} %</text>"
    for k in range(round(right / step) + 1):
        at = LEFT + (WIDE - RIGHT - LEFT) * k * step / right
        yield f'<text x="{at:.1f}" y="{HIGH - LOW + 18}" font-size="12" text-anchor="middle">'
        yield f"{k * step:,.6g}</text>"
    yield f'<text x="{WIDE / 2}" y="{HIGH - 6}" font-size="13" text-anchor="middle">'
    yield f"{'spent' if by_money else 'labels'}</text>"
    for place, (name, colour, line) in enumerate(lines):
        points = " ".join(
            f"{LEFT + (WIDE - RIGHT - LEFT) * a / right:.1f},{_y(v, low):.1f}"
            for a, v in zip(x, line, strict=True)
            if v == v
        )
        yield f'<polyline fill="none" stroke="{colour}" stroke-width="2.5" points="{points}"/>'
        at = LEFT + 14 + 110 * place
        yield f'<rect x="{at}" y="8" width="14" height="4" fill="{colour}"/>'
        yield f'<text x="{at + 20}" y="15" font-size="13">{name}</text>'
    yield "</svg>"


def _axis(most: float) -> tuple[float, float]:
    """Where an axis ends, and the step of its ticks: one, two or five times a power of ten.

    >>> _axis(2.92), _axis(1800.0)
    ((3.0, 0.5), (2000.0, 500.0))
    """
    power = 10.0 ** math.floor(math.log10(most / 4))
    step = next(power * k for k in (1, 2, 5, 10) if power * k * 6 >= most)
    return step * math.ceil(most / step - 1e-9), step


def _y(value: float, low: float) -> float:
    return 24 + (HIGH - LOW - 24) * (1.0 - value) / (1.0 - low if low < 1.0 else 1.0)


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.1f} %"
