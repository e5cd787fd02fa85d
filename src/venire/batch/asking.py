"""Asking functions and judges, many at a time; every answer is in the journal before it counts.

All calls are made from one event loop in a thread of its own, so that a notebook with a loop of its
own can wait for them, and the connections of judges serve several batches. A plain function runs in
threads, at most `parallel` at a time.

**The journal: every answer that was paid for, on disk before the next one is asked for.**

A file of JSON Lines. The first line names the items by a digest; each other line is an answer:
item, labeler, label (null: there was none), cost, and confidence and rationale if they were said. A
run that was interrupted begins by reading it: an answer that is there is not asked for again. A
line that was cut off is dropped, with its answer.
"""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import json
import math
import os
import threading
from collections import Counter, deque
from collections.abc import Callable, Collection, Coroutine, Hashable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from venire.batch.labelers import AWAY, FREE, NO_LABEL, Answer, BatchItem, Caller, Work, as_answer
from venire.errors import FileError, GaveUp, InputError, NotNow
from venire.model import Budget
from venire.tools.arrays import Floats, Ints
from venire.tools.untrusted import parse_json

T = TypeVar("T")

FORMAT: Final = "venire label journal 1"


class Entry(NamedTuple):
    """An answer that was paid for; `label` is None where there was none.

    >>> Entry("a", "ann", "spam", 0.5).row(), Entry("a", "net", "spam", 0.0, 0.9).row()
    (['a', 'ann', 'spam', 0.5], ['a', 'net', 'spam', 0.0, 0.9])
    """

    item: str
    labeler: str
    label: Any
    cost: float
    confidence: float | None = None
    rationale: str | None = None

    def row(self) -> list[Any]:
        """As a line of the journal: without what was not said at its end."""
        if self.rationale is not None:
            return list(self)
        return list(self[:5] if self.confidence is not None else self[:4])


def digest_of(items: Iterable[str]) -> str:
    """A fingerprint of the names of the items.

    >>> digest_of(["a", "b"]) == digest_of(["b", "a"]), len(digest_of([]))
    (False, 16)
    """
    return hashlib.sha256("\n".join(items).encode()).hexdigest()[:16]


def earlier(path: str | Path) -> tuple[int, float]:
    """How many answers a journal has, and what they cost; none if there is no such file.

    >>> earlier("nowhere.journal")
    (0, 0.0)
    """
    path = Path(path)
    text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    rows = [row for row in map(_parsed, text.split("\n")) if isinstance(row, list) and len(row) > 3]
    return len(rows), float(sum(row[3] for row in rows if isinstance(row[3], int | float)))


class Journal(AbstractContextManager["Journal"]):
    """The journal of a batch; `entries` are the answers of earlier runs.

    `stale` counts those that a labeler gave while it was configured otherwise: a judge with another
    prompt or model. A line that is an object has the digests of configurations from there on.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "journal")
    ...     with Journal(path, ["a", "b"]) as journal:
    ...         journal.append([Entry("a", "ann", "spam", 0.5)])
    ...     with Journal(path, ["a", "b"]) as journal:
    ...         print(journal.entries)
    [Entry(item='a', labeler='ann', label='spam', cost=0.5, confidence=None, rationale=None)]
    """

    def __init__(
        self, path: str | Path, items: Sequence[str], digests: Mapping[str, str] | None = None
    ) -> None:
        """Open the journal of these items, or begin it; `digests` are of the labelers as they are.

        Whoever has no digest, and what was answered before there were any, is never stale.
        """
        self.path = Path(path)
        self.entries: list[Entry] = []
        self._given: Counter[tuple[str, str]] = Counter()
        self._digests: dict[str, str] = {}
        head = {"format": FORMAT, "items": len(items), "digest": digest_of(items)}
        try:
            whole = self._read(head) if self.path.exists() else 0
            self._file: BinaryIO = open(self.path, "ab")  # noqa: SIM115
            self._file.truncate(whole)
        except OSError as error:
            raise FileError(self.path, None, f"cannot be written: {error.strerror}") from None
        if not whole:
            self._write(json.dumps(head) + "\n")
        now = digests or {}
        changed = {name: own for name, own in now.items() if self._digests.get(name) != own}
        if changed:
            self._write(json.dumps({"digests": changed}) + "\n")
        self.stale: dict[str, int] = {}
        for (name, then), count in self._given.items():
            if now.get(name, then) != then:
                self.stale[name] = self.stale.get(name, 0) + count

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        self._file.close()

    def append(self, entries: Sequence[Entry]) -> None:
        """Write answers, and wait until they are on disk."""
        self._write("".join(json.dumps(e.row(), ensure_ascii=False) + "\n" for e in entries))

    def _write(self, text: str) -> None:
        self._file.write(text.encode())
        self._file.flush()
        os.fsync(self._file.fileno())

    def _read(self, head: dict[str, Any]) -> int:
        content = self.path.read_bytes()
        whole = content.rfind(b"\n") + 1
        lines = content[:whole].decode("utf-8", "replace").split("\n")[:-1]
        if not lines:
            return 0
        if _parsed(lines[0]) != head:
            known = isinstance(_parsed(lines[0]), dict) and FORMAT in lines[0]
            what = "is the journal of other items" if known else "is not a journal of venire label"
            raise FileError(
                self.path, 1, f"{what}: give another file with --journal, or remove this one"
            )
        for number, line in enumerate(lines[1:], 2):
            row = _parsed(line)
            if isinstance(row, dict) and isinstance(row.get("digests"), dict):
                self._digests |= row["digests"]
                continue
            if not (isinstance(row, list) and 4 <= len(row) <= 6):
                message = "is not an answer of a labeler: the file is damaged, remove this line"
                raise FileError(self.path, number, message)
            entry = Entry(*row)
            self.entries.append(entry)
            if entry.labeler in self._digests:
                self._given[entry.labeler, self._digests[entry.labeler]] += 1
        return whole


def _parsed(line: str) -> Any:
    try:
        return parse_json(line)
    except ValueError:
        return None


class Live:
    """Answers of labelers who are asked now, or were asked by an earlier run of the same batch.

    `price` is what a label of each labeler costs on average so far, `most` the most that one has
    cost; `open` says who can be asked; `ended` that nothing chosen could be paid any more;
    `trouble` who was away last, and why;
    `confidence` is how sure each entry's answer was, NaN where it was not said; None if none was;
    `rationales` are the reasons that were given, by entry.
    """

    def __init__(
        self,
        work: Work,
        items: Sequence[BatchItem],
        callers: Sequence[Caller],
        classes: Sequence[Hashable] | None = None,
        journal: Journal | None = None,
        budget: Budget | None = None,
        beside: Live | None = None,
    ) -> None:
        """`classes` are those that a labeler may say; by default whatever they say.

        `beside` asks the same journal for others: both have the same classes. Whoever is in none of
        the two counts there.
        """
        self._work, self._items, self._callers = work, items, callers
        self._fixed, self._journal, self._budget = classes is not None, journal, budget
        self._codes = {name: k for k, name in enumerate(classes or ())}
        mine = {caller.id for caller in callers}
        if beside is not None:
            self._codes = beside._codes
            beside._forget(mine)
        self._item = work.item
        self.price = np.array([c.price for c in callers], np.float64)
        self.most = self.price.copy()
        self._dearest = self.price.copy()  # as `most`, of answers that were not taken yet too
        self.open = np.ones(len(callers), np.bool_)
        self.ended = self._poor = False
        self.trouble: str | None = None
        self._given = np.zeros(len(callers), np.int64)
        self._spent, self._labels = 0.0, 0
        self.confidence: Floats | None = None
        self.rationales: dict[int, str] = {}
        self._known: dict[tuple[str, str], Answer] = {}
        self._away: set[tuple[str, str]] = set()
        for e in () if journal is None else journal.entries:
            if beside is None or e.labeler in mine:
                self._known[e.item, e.labeler] = Answer(e.label, e.cost, e.confidence, e.rationale)
                self._pay(e.cost)
        self._calls = _Calls()
        self._pools = [ThreadPoolExecutor(c.parallel, f"venire-{c.id}") for c in callers]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        for pool in self._pools:
            pool.shutdown(wait=False, cancel_futures=True)

    @property
    def classes(self) -> tuple[Hashable, ...]:
        """The classes, in the order in which they were first said unless they were given."""
        return tuple(self._codes)

    def ask(self, entries: Ints) -> tuple[Ints, Floats]:
        """Ask these entries; those whose labeler was away cost nothing and are not labels."""
        self._poor = False
        names = [self._names(e) for e in entries.tolist()]
        new = [
            e for e, name in zip(entries.tolist(), names, strict=True) if name not in self._known
        ]
        if new:
            self._calls.run(self._ask(new))
        said, cost = np.full(len(names), FREE, np.int64), np.zeros(len(names))
        for place, name in enumerate(names):
            answer = self._known.get(name)
            if answer is not None:
                said[place], cost[place] = self._take(name[1], answer)
                said[place] = AWAY if name in self._away else said[place]
                self._hear(int(entries[place]), answer)
                del self._known[name]
        self._learn_prices(self._work.labeler[entries], cost, said != FREE)
        self.ended = self._poor and bool((said == FREE).all())
        return said, cost

    def left_over(self) -> tuple[Ints, Ints, Floats]:
        """Answers that an earlier run paid for and this one did not ask for."""
        place = {self._names(e): e for e in range(len(self._item))} if self._known else {}
        names = [name for name in self._known if name in place]
        taken = [self._take(name[1], self._known[name]) for name in names]
        for name in names:
            self._hear(place[name], self._known[name])
        self._known.clear()
        return (
            np.array([place[name] for name in names], np.int64),
            np.array([said for said, _ in taken], np.int64),
            np.array([cost for _, cost in taken], np.float64),
        )

    def _forget(self, labelers: Collection[str]) -> None:
        """Leave what these labelers said in earlier runs to another source."""
        for name in [name for name in self._known if name[1] in labelers]:
            self._spent -= self._known.pop(name).cost or 0.0
            self._labels -= 1

    def _hear(self, entry: int, answer: Answer) -> None:
        """Keep how sure an answer was, and why."""
        if answer.rationale is not None:
            self.rationales[entry] = answer.rationale
        if answer.confidence is not None:
            if self.confidence is None:
                self.confidence = np.full(len(self._item), np.nan)
            self.confidence[entry] = answer.confidence

    def _names(self, entry: int) -> tuple[str, str]:
        return self._items[self._item[entry]].id, self._callers[self._work.labeler[entry]].id

    def _take(self, labeler: str, answer: Answer) -> tuple[int, float]:
        cost = answer.cost or 0.0
        if answer.label is None:
            return NO_LABEL, cost
        if self._fixed and answer.label not in self._codes:
            raise InputError(
                f"labeler {labeler!r} said {answer.label!r}, expected one of the classes "
                f"{list(self._codes)}: correct the labeler, or raise NoAnswer there"
            )
        return self._codes.setdefault(answer.label, len(self._codes)), cost

    def _learn_prices(self, labeler: Ints, cost: Floats, asked: NDArray[np.bool_]) -> None:
        """The mean and the most that was paid; the stated price counts as one answer."""
        paid = np.bincount(labeler[asked], cost[asked], minlength=len(self.price))
        given = np.bincount(labeler[asked], minlength=len(self.price))
        before = self._given + (self.price > 0)
        total = np.maximum(before + given, 1)
        self.price = np.where(given > 0, (self.price * before + paid) / total, self.price)
        np.maximum.at(self.most, labeler[asked], cost[asked])
        self._given += given

    def _pay(self, cost: float | None) -> None:
        self._spent += cost or 0.0
        self._labels += 1

    async def _ask(self, entries: Sequence[int]) -> None:
        waiting: dict[int, deque[int]] = {}
        for e in entries:
            waiting.setdefault(int(self._work.labeler[e]), deque()).append(e)
        workers = []
        for m, queue in waiting.items():
            calls = -(-len(queue) // self._callers[m].at_once)
            most = min(self._callers[m].parallel, calls)
            workers += [self._work_off(m, queue) for _ in range(most)]
        done = await asyncio.gather(*workers, return_exceptions=True)
        for error in done:
            if isinstance(error, BaseException):
                raise error

    async def _work_off(self, m: int, queue: deque[int]) -> None:
        caller = self._callers[m]
        while queue and not self._calls.stopping:
            some = [queue.popleft() for _ in range(min(caller.at_once, len(queue)))]
            some = some[: self._affordable(m, len(some))]
            if not some:
                self._poor = True
                return
            if caller.stopped:
                self.trouble = f"labeler {caller.id!r} stopped: {caller.stopped}"
                self.open[m] = False
                return
            self._reserve(m, len(some))
            try:
                answers = await self._answers(m, some)
            except (NotNow, GaveUp) as fault:
                self._pass_over(m, some, fault)
                continue
            except BaseException:
                self._calls.stopping = True
                raise
            finally:
                self._reserve(m, -len(some))
            self._write(some, answers)

    def _pass_over(self, m: int, entries: Sequence[int], fault: Exception) -> None:
        """No label in this run; not in the journal, so that the next run asks again."""
        cost = float(getattr(fault, "cost", 0.0)) / len(entries)
        for e in entries:
            self._known[self._names(e)] = Answer(None, cost)
            self._away.add(self._names(e))
            self._spent += cost
        self.trouble = f"labeler {self._callers[m].id!r} was away: {fault}"
        if isinstance(fault, GaveUp):
            self.open[m] = False

    def _reserve(self, m: int, labels: int) -> None:
        """Questions under way count with the most that they have cost so far."""
        self._spent += labels * float(self._dearest[m])
        self._labels += labels

    def _affordable(self, m: int, wanted: int) -> int:
        if self._budget is None:
            return wanted
        left = self._budget.left(self._spent, self._labels)
        if left.labels is not None:
            wanted = min(wanted, left.labels)
        if left.money is not None and self._dearest[m] > 0:
            wanted = min(wanted, math.floor(left.money / float(self._dearest[m]) + 1e-9))
        return wanted

    async def _answers(self, m: int, entries: Sequence[int]) -> list[Answer]:
        caller = self._callers[m]
        contents = [self._items[self._item[e]].content for e in entries]
        price = float(caller.price)
        try:
            said = await self._call(m, contents if caller.many else contents[0])
        except (NotNow, GaveUp):
            raise
        except Exception as fault:
            cost = getattr(fault, "cost", None)
            if not isinstance(cost, int | float):
                first = self._items[self._item[entries[0]]].id
                raise InputError(
                    f"labeler {caller.id!r} failed at item {first!r} with {type(fault).__name__}: "
                    f"{fault}. Answers so far are kept: correct it and run again, or raise "
                    "NoAnswer where there is no label"
                ) from fault
            return [Answer(None, float(cost) / len(entries))] * len(entries)
        if not caller.many:
            return [as_answer(said, price)]
        answers = [as_answer(one, price) for one in said]
        if len(answers) != len(entries):
            raise InputError(
                f"labeler {caller.id!r} gave {len(answers)} answers to {len(entries)} items, "
                "expected one for each"
            )
        return answers

    async def _call(self, m: int, content: Any) -> Any:
        call = self._callers[m].call
        if inspect.iscoroutinefunction(call):
            return await call(content)
        loop = asyncio.get_running_loop()
        said = await loop.run_in_executor(self._pools[m], call, content)
        return await said if inspect.isawaitable(said) else said

    def _write(self, entries: Sequence[int], answers: Sequence[Answer]) -> None:
        rows = []
        for e, answer in zip(entries, answers, strict=True):
            name = self._names(e)
            if not isinstance(answer.label, str | int | float | bool | None):
                raise InputError(
                    f"labeler {name[1]!r} said {answer.label!r}, expected text or a number"
                )
            cost = float(answer.cost or 0.0)
            rows.append(Entry(*name, answer.label, cost, answer.confidence, answer.rationale))
            self._known[name] = answer
            self._pay(answer.cost)
            m = int(self._work.labeler[e])
            self._dearest[m] = max(self._dearest[m], answer.cost or 0.0)
        if self._journal is not None:
            self._journal.append(rows)


def close_labelers(labelers: Iterable[Any]) -> None:
    """Close the connections of labelers that have some, where batches opened them.

    >>> close_labelers([Caller("length", len)])
    """
    owners = [getattr(getattr(one, "call", None), "__self__", one) for one in labelers]
    for close in (getattr(owner, "close", None) for owner in owners):
        if inspect.iscoroutinefunction(close):
            asyncio.run_coroutine_threadsafe(close(), _loop()).result(10.0)


def run_beside(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in the event loop of batches, where labelers have their connections.

    >>> import asyncio
    >>> run_beside(asyncio.sleep(0, "done"))
    'done'
    """
    return asyncio.run_coroutine_threadsafe(work, _loop()).result()


@cache
def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()
    return loop


class _Calls:
    """Runs calls to their end; Ctrl-C lets those under way end, and asks nothing more."""

    def __init__(self) -> None:
        self.stopping = False

    def run(self, what: Any) -> None:
        later = asyncio.run_coroutine_threadsafe(what, _loop())
        try:
            while not later.done():
                _wait(later.exception, 0.2)
        except KeyboardInterrupt:
            self.stopping = True
            _wait(later.exception, 30.0)
            raise
        later.result()


def _wait(end: Callable[[float], Any], seconds: float) -> None:
    try:
        end(seconds)
    except TimeoutError:
        return
