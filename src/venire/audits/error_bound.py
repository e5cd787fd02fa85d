"""The error rate of verdicts, from audits that come one by one; overall and for each class."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from venire.audits.intervals import check_level, upper_count, upper_rate
from venire.audits.sampling import Drawn
from venire.errors import InputError


@dataclass
class ErrorBound:
    """What audits drawn at random say about an error rate, at all times.

    With probability `level` the rate is below `upper` after every audit at once, so that one may
    look whenever one likes and stop when the bound is good enough. The same holds of `interval`,
    which is bounded on both sides and therefore a little wider above.

    Parameters
    ----------
    level
        The probability with which a bound holds.
    size
        Of how many verdicts the audits are drawn without replacement: the bound is then on the
        share of these that are wrong, and there is nothing left to doubt when all are audited.
        None for verdicts of a process that goes on, whose rate of errors does not change.

    Attributes
    ----------
    audited, wrong, skipped
        How many were drawn and looked at; how many of them are wrong; of how many the auditor
        could not say. These count as wrong in upper bounds and as right in lower ones.

    Examples
    --------
    >>> bound = ErrorBound(size=2000)
    >>> for wrong in [False] * 95 + [True] * 5:
    ...     bound.update(wrong)
    >>> bound.audited, bound.wrong, bound.estimate, round(bound.upper, 4)
    (100, 5, 0.05, 0.132)
    >>> bound.update_many([False] * 100)
    >>> round(bound.upper, 4), [round(end, 4) for end in bound.interval]
    (0.066, [0.0035, 0.0715])

    See Also
    --------
    venire.audits.intervals : the method
    """

    level: float = 0.95
    size: int | None = None
    audited: int = 0
    wrong: int = 0
    skipped: int = 0

    def __post_init__(self) -> None:
        check_level(self.level)
        if self.size is not None and self.size < 1:
            raise InputError(f"got size {self.size}, expected a number of verdicts from 1, or None")
        counts = self.audited, self.wrong, self.skipped
        if min(counts) < 0 or self.wrong + self.skipped > self.audited:
            raise InputError(
                f"got {self.wrong} wrong and {self.skipped} skipped of {self.audited} audited, "
                "expected counts from 0 of which the first two are parts of the third"
            )
        self._check_size(0)

    def update(self, wrong: bool | None) -> None:
        """Count one audit: whether the verdict was wrong, None if the auditor could not say."""
        self.update_many([wrong])

    def update_many(self, wrong: Iterable[bool | None]) -> None:
        """Count several audits."""
        new = list(wrong)
        self._check_size(len(new))
        self.audited += len(new)
        self.skipped += sum(x is None for x in new)
        self.wrong += sum(bool(x) for x in new)

    @property
    def estimate(self) -> float | None:
        """The share that is wrong of those audited; None before the first."""
        said = self.audited - self.skipped
        return self.wrong / said if said else None

    @property
    def upper(self) -> float:
        """The rate is at most this, with probability `level`, at all times."""
        return self._upper(self.wrong + self.skipped, self.level)

    @property
    def interval(self) -> tuple[float, float]:
        """The rate is between these, with probability `level`, at all times.

        Half of what may go wrong is given to either side; the lower end is the upper bound on
        the share of right verdicts, seen from the other side.
        """
        half = (1 + self.level) / 2
        return self._lower(half), self._upper(self.wrong + self.skipped, half)

    def _lower(self, level: float) -> float:
        right = self.audited - self.wrong
        if self.size is None:
            return 1 - float(upper_rate(right, self.audited, level))
        return (self.size - upper_count(right, self.audited, self.size, level)) / self.size

    def _upper(self, count: int, level: float) -> float:
        if self.size is None:
            return float(upper_rate(count, self.audited, level))
        return upper_count(count, self.audited, self.size, level) / self.size

    def _check_size(self, more: int) -> None:
        if self.size is not None and self.audited + more > self.size:
            raise InputError(
                f"got {self.audited + more} audits of {self.size} verdicts, expected each once: "
                "raise size, or leave it out for verdicts of a process that goes on"
            )


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
