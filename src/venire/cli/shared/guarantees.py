"""What `venire audit guarantee` and `--guarantee` of aggregate, label and judge share."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from venire.cli.shared import screen
from venire.errors import FileError, InputError

if TYPE_CHECKING:
    from venire.audits import Guarantee
    from venire.files.audits import KnownLabels


GUARANTEE = (
    "Mark verdicts of which at least this share is right, such as 0.95, whatever the labelers "
    "do. It needs gold that was drawn at random: --gold, or --guarantee-gold if --gold is to teach."
)
GUARANTEE_LEVEL = "With --guarantee: the probability with which it holds. [default: 0.95]"
GUARANTEE_GOLD = "With --guarantee: gold drawn at random, that only tests: a file with task,label."

#: The three options.
RightShare = Annotated[float | None, typer.Option(metavar="X", help=GUARANTEE)]
Level = Annotated[float | None, typer.Option(metavar="X", help=GUARANTEE_LEVEL)]
TestingGold = Annotated[Path | None, typer.Option(metavar="FILE", help=GUARANTEE_GOLD)]


class Promise(NamedTuple):
    """The share that is to be right, with which probability, and the gold that tests it."""

    right: float
    level: float
    gold: Path

    def check(self, tasks: Iterable[str], taught: KnownLabels | None) -> None:
        """Refuse gold that does not fit the tasks before anything is paid for verdicts.

        Items that were asked may be among those drawn later at random: they teach, and what was
        drawn of the other items is a random sample of these.
        """
        known = drawn_gold(self.gold, dict.fromkeys(tasks, ""))
        asked = set() if taught is None else set(map(str, taught.asked))
        both = known.keys() & _teaching(taught)
        odd = next((task for task in known if task in both - asked), None)
        if odd is not None:
            raise InputError(
                f"task {odd!r} is in --gold and in --guarantee-gold, expected gold that teaches "
                "or tests: take it out of one of them"
            )
        if not known.keys() - both:
            message = "--gold has all of its tasks, which teach: draw others by venire audit draw"
            raise FileError(self.gold, None, message)
        if both:
            tasks = "1 task was" if len(both) == 1 else f"{len(both):,} tasks were"
            screen.say(f"{tasks} asked (--gold) and drawn (--guarantee-gold): they only teach")

    def kept(
        self,
        verdicts: Mapping[str, str],
        confidences: Mapping[str, float],
        taught: KnownLabels | None,
    ) -> Guarantee:
        """Which verdicts are guaranteed; those on tasks whose gold taught are not tested."""
        from venire.audits import guarantee

        known, teaching = drawn_gold(self.gold, verdicts, tell=False), _teaching(taught)
        others, tests = (
            {task: label for task, label in told.items() if task not in teaching}
            for told in (verdicts, known)
        )
        return guarantee(others, confidences, tests, self.right, self.level)


def _teaching(taught: KnownLabels | None) -> set[str]:
    """The tasks whose gold teaches, as text."""
    return set() if taught is None else set(map(str, taught.labels))


def promise_of(
    right: float | None, level: float | None, tests: Path | None, gold: Any
) -> tuple[Any, Promise | None]:
    """The gold that teaches and what is promised, by --gold and the options of a guarantee."""
    if right is None:
        if level is not None or tests is not None:
            name = "--guarantee-gold" if level is None else "--guarantee-level"
            raise InputError(f"{name} needs --guarantee: the share of right verdicts, as 0.95")
        return gold, None
    if tests is None and gold is None:
        raise InputError(
            "--guarantee needs --gold or --guarantee-gold: labels of tasks that were drawn at "
            "random, as by venire audit draw"
        )
    if tests is None:
        screen.warn("with --guarantee the gold of --gold tests and does not teach")
        tests, gold = Path(gold), None
    return gold, Promise(right, 0.95 if level is None else level, tests)


def drawn_gold(path: Path, verdicts: Mapping[str, str], tell: bool = True) -> dict[str, str]:
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
    if tell and not (found.marked or found.probabilities):
        screen.warn(
            "the guarantee holds if the tasks were drawn at random: draw them by venire audit draw"
        )
    if extra and tell:
        screen.warn(f"{len(extra):,} labels drawn as extra for their class do not count")
    skipped = filled[-1] + 1 - len(filled)
    if skipped and tell:
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


def guarantee_html(found: Guarantee) -> Iterator[str]:
    """The same as a part of the page of a report."""
    first, *rest = list(guarantee_lines(found))
    yield "<h2>Guarantee</h2>"
    said = [first, *rest[:1]] if found.confidence is not None else [first]
    yield f"<p>{escape(' '.join(said))}</p>"
    heads = ("surest", "confidence", "gold", "wrong", "at most", "passed")
    yield '<div class="scroll"><table><thead><tr>'
    yield "".join(f"<th>{name}</th>" for name in heads) + "</tr></thead><tbody>"
    for row in found.curve:
        cells = (
            f"{100 * row.coverage:.1f} %",
            f"{row.confidence:.4g}",
            f"{row.audited:,}",
            f"{row.wrong:,}",
            f"{100 * row.bound:.1f} %",
            "yes" if row.passed else "no",
        )
        yield "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"
    yield "</tbody></table></div>"
    if found.more:
        yield f'<p class="note">{escape(rest[-1])}</p>'
