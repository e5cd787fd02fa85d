"""What `venire audit guarantee` and `--guarantee` of aggregate, label and judge share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from venire.cli.shared import counted, screen
from venire.errors import FileError, InputError

if TYPE_CHECKING:
    from venire.audits import Guarantee
    from venire.audits.guarantees import Threshold
    from venire.files.audits import Gold, KnownLabels


GUARANTEE = (
    "Mark verdicts of which at least this share is right, such as 0.95, whatever the labelers "
    "do. It needs gold that was drawn at random: --gold, or --guarantee-gold if --gold is to teach."
)
GUARANTEE_LEVEL = "With --guarantee: the probability with which it holds. [default: 0.95]"
GUARANTEE_GOLD = "With --guarantee: gold drawn at random, that only tests: a file with task,label."


@dataclass(frozen=True, kw_only=True)
class Guaranteed:
    """The options of a guarantee."""

    guarantee: Annotated[float | None, typer.Option(metavar="X", help=GUARANTEE)] = None
    guarantee_level: Annotated[float | None, typer.Option(metavar="X", help=GUARANTEE_LEVEL)] = None
    guarantee_gold: Annotated[Path | None, typer.Option(metavar="FILE", help=GUARANTEE_GOLD)] = None

    def promise(self, gold: Any) -> tuple[Any, Promise | None]:
        """The gold that teaches, of that which was given, and what is promised."""
        right, level, tests = self.guarantee, self.guarantee_level, self.guarantee_gold
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


class Promise(NamedTuple):
    """The share that is to be right, with which probability, and the gold that tests it."""

    right: float
    level: float
    gold: Path

    def check(self, tasks: Iterable[str], taught: KnownLabels) -> None:
        """Refuse gold that does not fit the tasks before anything is paid for verdicts.

        Items that were asked may be among those drawn later at random: they teach, and what was
        drawn of the other items is a random sample of these.
        """
        known = drawn_gold(self.gold, dict.fromkeys(tasks, ""))
        both = known.keys() & set(map(str, taught.labels))
        alone = both - set(map(str, taught.asked))
        odd = next((task for task in known if task in alone), None)
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
        self, verdicts: Mapping[str, str], confidences: Mapping[str, float], taught: KnownLabels
    ) -> Guarantee:
        """Which verdicts are guaranteed; those on tasks whose gold taught are not tested."""
        from venire.audits import guarantee

        teaching = set(map(str, taught.labels))
        others, tests = (
            {task: label for task, label in told.items() if task not in teaching}
            for told in (verdicts, drawn_gold(self.gold, verdicts, tell=False))
        )
        return guarantee(others, confidences, tests, self.right, self.level)


def read_sample(
    path: Path, verdicts: Mapping[str, str], where: str = "", tell: bool = True
) -> tuple[Gold, dict[str, str | None]]:
    """The trusted labels of a file, and of those drawn at random all up to the last filled in.

    Those drawn as extra for their class do not count.
    """
    from venire.files import read_gold

    found = read_gold(path, verdicts)
    extra = {task for task, is_extra in found.drawn if is_extra}
    order = [task for task in found.labels if task not in extra]
    filled = [i for i, task in enumerate(order) if found.labels[task] is not None]
    if not filled:
        raise FileError(path, None, "no label is filled in: give the trusted labels of some tasks")
    if extra and tell:
        screen.warn(f"{len(extra):,} labels drawn as extra for their class do not count{where}")
    return found, {task: found.labels[task] for task in order[: filled[-1] + 1]}


def drawn_gold(path: Path, verdicts: Mapping[str, str], tell: bool = True) -> dict[str, str]:
    """The trusted labels of a file that were drawn at random from all verdicts.

    Labels that were drawn with unequal probabilities are refused.
    """
    found, known = read_sample(path, verdicts, tell=tell)
    if found.probabilities and len(set(found.probabilities.values())) > 1:
        message = "items were drawn with unequal probabilities, expected equal ones"
        raise FileError(path, None, f"{message}: draw them by venire audit draw")
    if tell and not (found.marked or found.probabilities):
        screen.warn(
            "the guarantee holds if the tasks were drawn at random: draw them by venire audit draw"
        )
    skipped = sum(label is None for label in known.values())
    if skipped and tell:
        tasks = counted(skipped, "task")
        screen.warn(f"{tasks} before the last label have none: the verdicts count as wrong there")
    # a label that is missing before others counts as an error, so that skipping gains nothing
    return {task: label or "" for task, label in known.items()}


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
    for surest, sure, gold, wrong, most, passed in map(_cells, found.curve):
        yield f"{surest:>7}    {sure:>10}  {gold:>4}  {wrong:>5}  {most:>7}  {passed}"
    if found.more:
        bought = ", ".join(f"{n:,} more {100 * x:.0f} %" for n, x in found.more.items())
        yield ""
        yield f"if further trusted labels err as often as these: {bought}"


def _cells(row: Threshold) -> tuple[str, ...]:
    return (
        f"{100 * row.coverage:.1f} %",
        f"{row.confidence:.4g}",
        f"{row.audited:,}",
        f"{row.wrong:,}",
        f"{100 * row.bound:.1f} %",
        "yes" if row.passed else "no",
    )


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
        yield "<tr>" + "".join(f"<td>{cell}</td>" for cell in _cells(row)) + "</tr>"
    yield "</tbody></table></div>"
    if found.more:
        yield f'<p class="note">{escape(rest[-1])}</p>'
