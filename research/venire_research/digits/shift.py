"""The main job: the real engine labels the stream, slot by slot, and can be watched.

The scheduler has its defaults: it knows the names, prices and capacities of its labelers, and
learns how good they are while it serves. A student learns from the verdicts and labels along, for
nothing. The truth is used only to count right verdicts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from venire.engine import Scheduler
from venire.model import Exit, Item, Label, Labeler
from venire.scheduling import LearnWhileServing
from venire.student import Student
from venire_research.digits.panel import SLOTS, DigitJob

__all__ = ["LEARNING_SLOTS", "Progress", "hire", "work"]

#: The paper's T_L in the comparison, one slot in twenty of the stream. It was chosen with the truth
#: in view, after trying 10, 20, 30 and 40 on ten streams: a longer phase learns better and skips
#: more images.
LEARNING_SLOTS = 20

#: How many of the latest verdicts are shown.
_LATEST = 6


@dataclass(frozen=True)
class Progress:
    """How far the job is at the end of a slot.

    `in_hand` items were outstanding in the slot, `queue` of them still are, and `unanswered`
    have left without a verdict so far. `money` was paid for `labels`. `competences` is what has
    been learned, None before that; `latest` are the last exits with a verdict, the newest last.
    The student was taught `lessons` verdicts, and agrees with that share of others (None: silent).
    """

    slot: int = -1
    arrived: int = 0
    in_hand: int = 0
    queue: int = 0
    labels: int = 0
    money: float = 0.0
    verdicts: int = 0
    right: int = 0
    unanswered: int = 0
    competences: dict[str, float] | None = None
    latest: tuple[Exit, ...] = field(default=())
    lessons: int = 0
    agreement: float | None = None

    @property
    def accuracy(self) -> float:
        """Share of the verdicts that are right; 0 while there are none."""
        return self.right / self.verdicts if self.verdicts else 0.0

    def after(self, exits: tuple[Exit, ...], job: DigitJob) -> Progress:
        """Count the items that have just left."""
        decided = tuple(e for e in exits if e.verdict.label is not None)
        right = sum(e.verdict.label == int(job.truth[job.row[e.item]]) for e in decided)
        return replace(
            self,
            verdicts=self.verdicts + len(decided),
            right=self.right + right,
            unanswered=self.unanswered + len(exits) - len(decided),
            latest=(self.latest + decided)[-_LATEST:],
        )


def hire(job: DigitJob, revisions: int = 0) -> Scheduler:
    """A scheduler that knows what its labelers cost and how many labels a slot they give.

    With `revisions` it goes on to revise that number of the latest verdicts.
    """
    terms = zip(job.labelers, job.capacity, job.prices, strict=True)
    panel = [Labeler(name, capacity=n, price=price) for name, n, price in terms]
    return Scheduler(
        panel, tuple(job.table.classes), learning=LearnWhileServing(), revisions=revisions
    )


def work(
    job: DigitJob,
    scheduler: Scheduler,
    seed: int = 0,
    slots: int = SLOTS,
    student: Student | None = None,
) -> Iterator[Progress]:
    """Do the job with the four verbs, and a student if given; yields the progress of every slot.

    >>> from venire_research.digits import hire, load_job, work
    >>> job = load_job()
    >>> *_, last = work(job, hire(job), slots=40)
    >>> last.slot, last.arrived == last.verdicts + last.unanswered + last.queue
    (39, True)
    """
    items = job.world(seed).items(slots)
    first = items.first(slots)
    number = {name: m for m, name in enumerate(job.labelers)}
    price = job.prices
    seat = student.join(scheduler, job.contents) if student else None
    now = Progress()
    for slot in range(slots):
        rows = range(first[slot], first[slot + 1])
        scheduler.arrive(Item(str(items.name(row)), items.weight[row]) for row in rows)
        if seat is not None:
            seat.label()
        assignments = scheduler.assign()
        for a in assignments:
            said = int(job.said[job.row[a.item], number[a.labeler]])
            scheduler.observe(Label(a.item, a.labeler, said))
        now = replace(
            now.after(scheduler.close(), job),
            slot=slot,
            arrived=now.arrived + len(rows),
            in_hand=now.queue + len(rows),
            queue=len(scheduler.outstanding),
            labels=now.labels + len(assignments),
            money=now.money + sum(price[number[a.labeler]] for a in assignments),
            competences=scheduler.competences,
        )
        if seat is not None and seat.learn() and seat.taught is not None:
            agreement = seat.taught.agreement if seat.taught.ready else None
            now = replace(now, lessons=seat.taught.items, agreement=agreement)
        yield now
