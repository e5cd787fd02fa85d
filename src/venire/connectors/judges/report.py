"""Judges beside their labels: what they would cost, and how they did.

Of a run: requests, tokens, cost and faults by kind, how far each agrees with the others, the
position bias of judges that compare, and for pairs the win rate with Wilson's interval. Counts of
requests and faults are of this run; labels of an earlier run that the journal has, and answers out
of the cache, cost nothing again. The bias is of all runs, as far as the cache has the answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any, Final

import numpy as np

from venire.audits.intervals import share_interval
from venire.batch.labelers import BatchItem
from venire.connectors.judges.judge import Judge
from venire.connectors.judges.panel import PairJudge
from venire.labels import LabelTable

#: What win rates are not.
RAW: Final = (
    "raw rates: errors of judges are not corrected, and a judge's pairs are those that the budget "
    "chose for it; with trusted labels of some pairs, venire estimate --wins corrects them"
)

#: Half of Wilson's and the bias's 95 %, in standard errors.
_Z: Final = 1.96


def forecast(judges: Sequence[Judge], items: Sequence[Any]) -> dict[str, Any]:
    """What it would cost if every judge labelled every item, by the length of the questions.

    A token is taken for four characters, an answer for ten tokens; what the cache has costs
    nothing.
    """
    rows: list[dict[str, Any]] = []
    for judge in judges:
        asked, cached, read = judge.forecast(items)
        written = asked * judge.written
        cost = judge.config.price.of(read, written)
        rows.append(
            {
                "id": judge.id,
                "questions": asked,
                "cached": cached,
                "input_tokens": read,
                "output_tokens": written,
                "cost": cost,
                "priced": bool(judge.config.price.input or judge.config.price.output),
            }
        )
    total = sum(row["cost"] for row in rows)
    return {"items": len(items), "judges": rows, "cost": total}


async def recount_bias(
    judges: Sequence[Judge], items: Sequence[BatchItem], table: LabelTable
) -> None:
    """Measure position biases over the labels of all runs, where the cache has the answers."""
    shown = {item.id: item.content for item in items}
    places = {name: m for m, name in enumerate(table.labelers)}
    for judge in judges:
        if isinstance(judge, PairJudge) and judge.id in places:
            mine = np.unique(table.item[table.labeler == places[judge.id]]).tolist()
            await judge.recount([shown[table.items[i]] for i in mine])


def judges_record(
    judges: Sequence[Judge], table: LabelTable, codes: Any, resumed: int = 0
) -> dict[str, Any]:
    """What became of the judges, for JSON: `judges`, and for pairs `wins`.

    `resumed` are the answers that the journal had before this run.
    """
    agree = _agreement(table)
    rows = [
        {
            "id": judge.id,
            **judge.usage.to_json(),
            "agreement": agree.get(judge.id),
            "stopped": judge.stopped,
            **({"position": _position(judge)} if isinstance(judge, PairJudge) else {}),
        }
        for judge in judges
    ]
    wins = _wins(judges, table, codes)
    earlier = {"answers_of_earlier_runs": resumed} if resumed else {}
    return {"judges": rows, **earlier, **({"wins": wins} if wins else {})}


def judge_lines(record: Mapping[str, Any]) -> Iterator[str]:
    """The same for people, a line each."""
    for row in record.get("wins", ()):
        yield f"wins      {_win_words(row)}"
    if "wins" in record:
        yield f"wins      {RAW}"
    earlier = record.get("answers_of_earlier_runs")
    for row in record["judges"]:
        words = f"in this run {_row_words(row)}" if earlier else _row_words(row)
        yield f"judge     {row['id']}: {words}"
    for row in record.get("batches", ()):
        yield f"batches   {row['id']}: {_batch_words(row)}"


def judges_html(record: Mapping[str, Any]) -> Iterator[str]:
    """The same as a part of the page of a report."""
    yield "<h2>Judges</h2>"
    for row in record.get("wins", ()):
        yield f"<p>{escape(_win_words(row))}</p>"
    if "wins" in record:
        yield f'<p class="note">{escape(RAW)}.</p>'
    heads = (
        "judge",
        "labels",
        "requests",
        "tokens",
        "cost",
        "agreement",
        "faults",
        "position bias",
    )
    yield '<div class="scroll"><table><thead><tr>'
    yield "".join(f"<th>{name}</th>" for name in heads) + "</tr></thead><tbody>"
    for row in record["judges"]:
        cells = (
            row["id"],
            f"{row['labels']:,}",
            f"{row['requests']:,}",
            f"{row['input_tokens'] + row['output_tokens']:,}",
            f"{row['cost']:.6g}",
            _percent(row["agreement"]),
            _fault_words(row) or "none",
            _bias_words(row.get("position")) or "-",
        )
        yield "<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in cells) + "</tr>"
    yield "</tbody></table></div>"
    for row in record.get("batches", ()):
        yield f"<p>Batches of {escape(row['id'])}: {_batch_words(row)}.</p>"
    yield (
        '<p class="note">Requests, cost and faults are of this run. Agreement: how '
        "often another judge of the same item says the same.</p>"
    )


def _agreement(table: LabelTable) -> dict[Any, float | None]:
    """How often another labeler of the same item says the same, by labeler."""
    n, k = len(table.items), len(table.classes)
    votes = np.zeros((n, k))
    np.add.at(votes, (table.item, table.said), 1.0)
    same = votes[table.item, table.said] - 1.0
    others = votes.sum(axis=1)[table.item] - 1.0
    met = np.bincount(table.labeler, others, minlength=len(table.labelers))
    agreed = np.bincount(table.labeler, same, minlength=len(table.labelers))
    shares = (None if m == 0 else float(a / m) for a, m in zip(agreed, met, strict=True))
    return dict(zip(table.labelers, shares, strict=True))


def _position(judge: PairJudge) -> dict[str, Any]:
    bias, error = judge.bias, judge.bias.error
    known = np.isfinite(error)
    return {
        "pairs": bias.pairs,
        "flips": bias.flips,
        "bias": bias.bias if bias.pairs else None,
        "low": max(-1.0, bias.bias - _Z * error) if known else None,
        "high": min(1.0, bias.bias + _Z * error) if known else None,
    }


def _wins(judges: Sequence[Judge], table: LabelTable, codes: Any) -> list[dict[str, Any]]:
    """The win rate of what is compared, by verdicts and by each judge; nothing without pairs."""
    pairs = {judge.config.pair: judge for judge in judges if isinstance(judge, PairJudge)}
    if len(pairs) != 1:
        return []
    (fields, one), *_ = pairs.items()
    first, second, *_ = one.config.classes
    place = {name: k for k, name in enumerate(table.classes)}
    a, b = place.get(first, -1), place.get(second, -2)
    labelled = np.diff(table.start) > 0
    rows = [_rate(fields, "verdicts", np.asarray(codes)[labelled], a, b)]
    for m, name in enumerate(table.labelers):
        rows.append(_rate(fields, str(name), table.said[table.labeler == m], a, b))
    return rows


def _rate(fields: Any, by: str, said: Any, a: int, b: int) -> dict[str, Any]:
    """Wins, losses and ties of the first of two; the rate counts a tie as half a win."""
    n = int(said.size)
    wins, losses = int((said == a).sum()), int((said == b).sum())
    ties = n - wins - losses
    low, high = share_interval(wins + ties / 2, n)
    return {
        "of": fields[0],
        "against": fields[1],
        "by": by,
        "pairs": n,
        "wins": wins,
        "losses": losses,
        "ties": ties,
        "rate": (wins + ties / 2) / n if n else None,
        "low": low,
        "high": high,
    }


def _win_words(row: Mapping[str, Any]) -> str:
    """One line.

    >>> _win_words({"of": "a", "against": "b", "by": "verdicts", "pairs": 10, "wins": 8,
    ...             "losses": 2, "ties": 0, "rate": 0.8, "low": 0.4902, "high": 0.9433})
    'a against b by verdicts: 80.0 % (49.0 to 94.3 %) of 10 pairs, 8 won, 2 lost, 0 ties'
    """
    if not row["pairs"]:
        return f"{row['of']} against {row['against']} by {row['by']}: no labels"
    return (
        f"{row['of']} against {row['against']} by {row['by']}: {100 * row['rate']:.1f} % "
        f"({100 * row['low']:.1f} to {100 * row['high']:.1f} %) of {row['pairs']:,} pairs, "
        f"{row['wins']:,} won, {row['losses']:,} lost, {row['ties']:,} ties"
    )


def _row_words(row: Mapping[str, Any]) -> str:
    words = [f"{row['requests']:,} requests", f"{row['cached']:,} from the cache"]
    words += [f"cost {row['cost']:.6g}"]
    if row["unsure"]:
        words.append(f"not sure {row['unsure']:,} times")
    if row["agreement"] is not None:
        words.append(f"agrees with others in {_percent(row['agreement'])}")
    words.append(f"faults: {_fault_words(row)}" if row["faults"] else "no faults")
    words += filter(None, [_bias_words(row.get("position"))])
    return ", ".join(words)


def _batch_words(row: Mapping[str, Any]) -> str:
    return (
        f"{row['batches']:,} batches, {row['questions']:,} questions sent, {row['answers']:,} "
        f"answered, cost {row['cost']:.6g}, saved {row['saved']:.6g}, in all runs"
    )


def _fault_words(row: Mapping[str, Any]) -> str:
    return ", ".join(f"{kind} {count:,}" for kind, count in row["faults"].items())


def _bias_words(position: Mapping[str, Any] | None) -> str:
    if not position or position["bias"] is None:
        return ""
    between = (
        "" if position["low"] is None else f" ({position['low']:+.2f} to {position['high']:+.2f})"
    )
    return f"position bias {position['bias']:+.2f}{between} over {position['pairs']:,} pairs"


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.1f} %"
