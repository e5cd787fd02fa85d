"""What `venire audit guarantee` and `venire aggregate --guarantee` share."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from venire.cli import screen
from venire.errors import FileError, InputError

if TYPE_CHECKING:
    from venire.audits import Guarantee

__all__ = ["drawn_gold", "guarantee_file", "guarantee_lines", "no_overlap"]


def drawn_gold(path: Path, verdicts: Mapping[str, str]) -> dict[str, str]:
    """The trusted labels of a file that were drawn at random from all verdicts.

    Those drawn as extra for their class do not count; labels that were drawn with unequal
    probabilities are refused.
    """
    from venire.files import read_gold

    found = read_gold(path, dict(verdicts))
    if found.probabilities and len(set(found.probabilities.values())) > 1:
        message = "items were drawn with unequal probabilities, expected equal ones"
        raise FileError(path, None, f"{message}: draw them by venire audit draw")
    extra = {task for task, is_extra in found.drawn if is_extra}
    order = [task for task, is_extra in found.drawn if not is_extra]
    filled = [i for i, task in enumerate(order) if found.labels[task] is not None]
    if not filled:
        raise FileError(path, None, "no label is filled in: give the trusted labels of some tasks")
    if not (found.marked or found.probabilities):
        screen.warn(
            "the guarantee holds if the tasks were drawn at random: draw them by venire audit draw"
        )
    if extra:
        screen.warn(f"{len(extra):,} labels drawn as extra for their class do not count")
    skipped = filled[-1] + 1 - len(filled)
    if skipped:
        tasks = "1 task" if skipped == 1 else f"{skipped:,} tasks"
        screen.warn(f"{tasks} before the last label have none: the verdicts count as wrong there")
    # a label that is missing before others counts as an error, so that skipping gains nothing
    return {task: found.labels[task] or "" for task in order[: filled[-1] + 1]}


def guarantee_file(
    verdicts: Path,
    columns: Sequence[str],
    gold: Path,
    shares: tuple[float, float],
    out: Path | None,
    as_json: bool,
) -> None:
    """Mark the verdicts of a file, and print how many are guaranteed."""
    from venire.audits import guarantee
    from venire.files import check_targets, columns_output, read_judged, write_outputs

    if out is not None:
        check_targets([out], [verdicts, gold])
    judged = read_judged(verdicts, columns)
    if judged.confidences is None:
        message = "there is no column 'confidence', by which the surest verdicts are found"
        raise FileError(verdicts, None, f"{message}: give verdicts of aggregate, label or judge")
    known = drawn_gold(gold, judged.verdicts)
    found = guarantee(judged.verdicts, judged.confidences, known, *shares)
    if out is not None:
        tasks = list(judged.verdicts)
        marked: dict[str, list[Any]] = {
            "task": tasks,
            "label": list(judged.verdicts.values()),
            "confidence": [judged.confidences[task] for task in tasks],
            "guaranteed": ["yes" if task in found.tasks else "no" for task in tasks],
        }
        write_outputs([columns_output(out, marked)])
    if as_json:
        print(json.dumps(found.record(), indent=2, allow_nan=False))
    else:
        print("\n".join(guarantee_lines(found)))


def guarantee_lines(found: Guarantee) -> Iterator[str]:
    """The report: how many are guaranteed, the curve, and what more labels would buy."""
    level, wrong = f"{100 * found.level:g} %", f"{100 * (1 - found.right):.3g} %"
    if found.confidence is None:
        yield f"no verdict is guaranteed: {found.curve[-1].audited:,} trusted labels do not show it"
    else:
        yield (
            f"{len(found.tasks):,} of {found.verdicts:,} verdicts ({100 * found.coverage:.1f} %) "
            f"are guaranteed, those at least {found.confidence:.4g} sure:"
        )
        yield f"with probability {level} at most {wrong} of them are wrong, however often you look"
    yield ""
    yield "surest     confidence  gold  wrong  at most  passed"
    for row in found.curve:
        yield (
            f"{100 * row.coverage:5.1f} %    {row.confidence:10.4g}  {row.audited:4,}  "
            f"{row.wrong:5,}  {100 * row.bound:5.1f} %  {'yes' if row.passed else 'no'}"
        )
    if found.more:
        bought = ", ".join(f"{n:,} more {100 * x:.0f} %" for n, x in found.more.items())
        yield ""
        yield f"if further trusted labels err as often as these: {bought}"


def no_overlap(teach: Mapping[Any, Any], test: Mapping[Any, Any]) -> None:
    """Refuse gold that teaches and tests."""
    both = next((task for task in test if task in teach), None)
    if both is not None:
        raise InputError(
            f"task {both!r} is in --gold and in --guarantee-gold, expected gold that teaches or "
            "tests: take it out of one of them"
        )
