"""What an audit says of a set of verdicts, overall and for each class."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from venire.audits.drawing import Drawn
from venire.audits.error_bound import ErrorBound
from venire.errors import InputError

__all__ = ["AuditReport", "audit_bounds"]


@dataclass(frozen=True)
class AuditReport:
    """The error rate of all verdicts, and of those that say each class.

    Every bound holds at its level by itself. For all of them together, divide what may go wrong
    by their number: with four classes and all of them, level 0.99 each for 0.95 together.
    """

    overall: ErrorBound
    classes: dict[Hashable, ErrorBound]


def audit_bounds(
    verdicts: Mapping[Any, Hashable],
    gold: Mapping[Any, Hashable | None],
    drawn: Iterable[Drawn] | None = None,
    level: float = 0.95,
    ongoing: bool = False,
) -> AuditReport:
    """Compare verdicts with the trusted labels of those that were drawn.

    Parameters
    ----------
    verdicts
        The verdict on each task, all of those that were drawn from.
    gold
        The trusted label of each audited task; None where it could not be said.
    drawn
        The tasks in the order in which they were drawn (`draw_audit`); by default those of `gold`.
        Extra ones count for their class only. Tasks without gold at the end were not yet audited;
        any before are skipped: they count as wrong in upper bounds, as right in lower ones.
    level
        The probability with which each bound holds.
    ongoing
        Whether verdicts to come are meant too, not only these.

    Examples
    --------
    >>> from venire.audits import draw_audit
    >>> verdicts = {i: "spam" if i % 10 == 0 else "ok" for i in range(1000)}
    >>> drawn = draw_audit(verdicts, 0.1, seed=1)
    >>> gold = {task: "eggs" if task % 13 == 0 else verdicts[task] for task, _ in drawn}
    >>> report = audit_bounds(verdicts, gold, drawn)
    >>> report.overall.audited, report.overall.wrong, round(report.overall.upper, 3)
    (100, 8, 0.172)
    >>> {label: round(bound.upper, 3) for label, bound in report.classes.items()}
    {'spam': 0.36, 'ok': 0.183}
    """
    listed = [Drawn(task) for task in gold] if drawn is None else list(drawn)
    _check(verdicts, gold, listed)
    sizes = Counter(verdicts.values())
    overall = ErrorBound(level, None if ongoing else len(verdicts))
    classes = {label: ErrorBound(level, None if ongoing else size) for label, size in sizes.items()}
    for task, extra in _audited(gold, listed):
        truth, label = gold.get(task), verdicts[task]
        wrong = None if truth is None else truth != label
        classes[label].update(wrong)
        if not extra:
            overall.update(wrong)
    return AuditReport(overall, classes)


def _audited(gold: Mapping[Any, Hashable | None], listed: list[Drawn]) -> list[Drawn]:
    """The list up to the last that has gold."""
    known = [i for i, (task, _) in enumerate(listed) if gold.get(task) is not None]
    return listed[: known[-1] + 1] if known else []


def _check(
    verdicts: Mapping[Any, Hashable],
    gold: Mapping[Any, Hashable | None],
    listed: list[Drawn],
) -> None:
    tasks = [task for task, _ in listed]
    strange = next((task for task in tasks if task not in verdicts), None)
    if strange is not None:
        raise InputError(
            f"there is no verdict on {strange!r}, expected one on every audited task: give the "
            "verdicts that the audit was drawn from"
        )
    if len(set(tasks)) < len(tasks):
        twice = Counter(tasks).most_common(1)[0][0]
        raise InputError(f"task {twice!r} was drawn twice, expected each once: drop one of them")
    chosen = next(iter(gold.keys() - set(tasks)), None)
    if chosen is not None:
        raise InputError(
            f"task {chosen!r} has gold and was not drawn, expected gold of drawn tasks only: one "
            "that somebody chose says nothing about the others, so leave it out"
        )
