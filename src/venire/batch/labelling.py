"""`label`: a batch of items, labelled within a budget; `label_recorded`: the same on old data.

Read from files: the items (`read_batch`) and the panel (`read_batch_panel`).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from venire.batch.asking import Journal, Live
from venire.batch.labelers import (
    BatchItem,
    Caller,
    NoAnswer,
    Recorded,
    Teachable,
    Work,
    as_callers,
    as_items,
    recorded_work,
)
from venire.batch.outcome import Labelled, settle, stale_words
from venire.batch.rounds import (
    GROWTH,
    Expert,
    Progress,
    Source,
    Terms,
    consult,
    reserve,
    run_rounds,
    truth_codes,
)
from venire.costs import Costs
from venire.errors import FileError, InputError
from venire.estimators.dependence import Families
from venire.estimators.gold import Gold
from venire.files.trees import read_tree
from venire.labels import LabelTable, Names
from venire.labels.sources import as_table
from venire.labels.sources.columns import like
from venire.labels.sources.files import is_json_lines, read_records
from venire.model import Budget
from venire.tools.csv_rows import number, read_dicts, read_head, shown

#: The keys an entry may have; those of `OWN` are not options of `Caller`.
OWN: Final = ("id", "call", "column")
KEYS: Final = ("id", "price", "call", "column", "parallel", "many", "family", "trusted")


def read_batch(path: str | Path) -> tuple[BatchItem, ...]:
    r"""The items of a .jsonl or .csv file, which have an `id`; also weight, target and eligible.

    Labelers are shown the whole record. Names of eligible labelers are separated by |, in JSON
    they may be a list.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "items.jsonl")
    ...     _ = path.write_text('{"id": "a", "text": "Buy now!", "target": 0.99}\n')
    ...     read_batch(path)[0].content["text"]
    'Buy now!'
    """
    path = Path(path)
    try:
        wanted = '{"id": "post-1", ...}'
        records = list(read_records(path, wanted)) if is_json_lines(path) else _csv(path)
    except UnicodeDecodeError:
        raise FileError(path, None, "this is not UTF-8 text: save the file in UTF-8") from None
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise FileError(path, None, f"cannot be read ({reason}): check the path") from None
    if not records:
        raise FileError(path, 1, "holds no items: add one line for each")
    seen: dict[str, int] = {}
    for line, record in records:
        name = str(record.get("id") or "")
        if not name:
            raise FileError(path, line, "has no id: give every item one")
        if seen.setdefault(name, line) != line:
            message = f"item {shown(name)} is on line {seen[name]} already: drop or rename one"
            raise FileError(path, line, message)
        try:
            as_items([record])
        except InputError as error:
            raise FileError(path, line, str(error)) from None
    return as_items(record for _, record in records)


def _csv(path: Path) -> list[tuple[int, dict[str, Any]]]:
    """Records of a CSV file; weight and target are numbers, empty fields are left out."""
    names, _ = read_head(path, 0)
    if "id" not in names:
        raise FileError(path, 1, f"has the columns {names}, expected one called id")
    records = []
    for line, row in read_dicts(path):
        record: dict[str, Any] = {name: value for name, value in row.items() if value}
        for name in ("weight", "target"):
            if name in record:
                record[name] = _number(path, line, name, record[name])
        records.append((line, record))
    return records


def _number(path: Path, line: int, name: str, text: str) -> float:
    value = number(text)
    if value is None:
        raise FileError(path, line, f"{name} is {shown(text)}, expected a number")
    return value


Find = Callable[[str], Callable[[Any], Any]]
Kinds = Mapping[str, Callable[[Mapping[str, Any]], Caller]]


def read_batch_panel(
    path: str | Path, find: Find, kinds: Kinds | None = None
) -> tuple[Caller, ...]:
    r"""The labelers of a .yaml, .toml or .json file; `find` turns `module:function` into one.

    A list, or a list under `labelers`. Each has an `id`, a `price` (0 if it is left out), and
    either `call`, a function of the item, or `column`, a field of the item that holds its label;
    `parallel` calls may run at a time, and with `many` the function takes a list of items. Those of
    one `family` may share errors; one that is `trusted` is an expert. `kinds` are other keys than
    `call` and `column`, such as `onnx`, and what makes a labeler of the entry.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "panel.json")
    ...     _ = path.write_text('[{"id": "old", "column": "by_hand", "price": 0.2}]')
    ...     (caller,) = read_batch_panel(path, {}.get)
    >>> caller.id, caller.price, caller.call({"by_hand": "spam"})
    ('old', 0.2, 'spam')
    """
    path = Path(path)
    content, line_of = read_tree(path)
    root = ("labelers",) if isinstance(content, Mapping) else ()
    entries = content.get("labelers") if isinstance(content, Mapping) else content
    if not isinstance(entries, list) or not entries:
        raise FileError(path, None, "expected a list of labelers: - {id: small, call: mine:judge}")
    callers: list[Caller] = []
    for place, entry in enumerate(entries):
        line = line_of((*root, place))
        try:
            callers.append(_caller(entry, find, kinds or {}))
        except InputError as error:
            raise FileError(path, line, f"labeler {place + 1}: {error}") from None
        if [c.id for c in callers].count(callers[-1].id) > 1:
            raise FileError(path, line, f"labeler {shown(callers[-1].id)} is there twice")
    return tuple(callers)


def _caller(entry: Any, find: Find, kinds: Kinds) -> Caller:
    if not isinstance(entry, Mapping) or not entry.get("id"):
        raise InputError(f"got {entry!r}, expected an id, a price, and call or column")
    named = [key for key in ("call", "column", *kinds) if key in entry]
    if len(named) != 1:
        either = ", ".join(["call: module:function", "column: a field", *kinds])
        raise InputError(f"{entry['id']} needs one of {either}; it has {named or 'none'}")
    if named[0] in kinds:
        return kinds[named[0]](entry)
    unknown = next((key for key in entry if key not in KEYS), None)
    if unknown is not None:
        raise InputError(f"{entry['id']} has the key {unknown!r}, expected {', '.join(KEYS)}")
    call = find(str(entry["call"])) if "call" in entry else _column(str(entry["column"]))
    options = {key: entry[key] for key in KEYS if key in entry and key not in OWN}
    return Caller(str(entry["id"]), call, **options)


def _column(name: str) -> Callable[[Any], Any]:
    def read(item: Any) -> Any:
        said = item.get(name)
        if said in (None, ""):
            raise NoAnswer(f"the item has no {name}")
        return said

    return read


Watch = Callable[[Progress], None]


def label(
    items: Mapping[str, Any] | Iterable[Any],
    labelers: Mapping[str, Any] | Iterable[Any],
    budget: Budget | float | None = None,
    *,
    target: float | None = None,
    classes: Sequence[Hashable] | None = None,
    costs: Costs | None = None,
    seed: int = 0,
    journal: str | Path | None = None,
    truth: Mapping[Any, Hashable] | None = None,
    progress: Watch | None = None,
    student: Teachable | None = None,
    families: Families | None = None,
    gold: Gold | None = None,
    asked: Collection[Hashable] = (),
    growth: float = GROWTH,
    expert_share: float | None = None,
    alone: float | None = None,
) -> Labelled:
    """Label a batch of items: ask the labelers, one round after the other, where it pays most.

    Everything is there from the start and delay costs nothing. Each round learns how good the
    labelers are from the labels so far, and buys the labels that lower the risk of wrong verdicts
    most for their price (`venire.batch.rounds`), until the budget is spent, every item has its
    target, or no label would tell anything.

    Parameters
    ----------
    items
        A dict from id to content, or records with an `id` and optionally `weight`, `target` and
        `eligible` (see `BatchItem`).
    labelers
        A dict from name to function; `Caller`s, which have a price; or objects with `id` and
        `answer`, such as judges. They are called with the content of an item, and may be async.
    budget
        A `Budget`, or an amount of money. It may be left out if there is a target.
    target
        An item is done when its verdict has this confidence.
    classes
        What a label may be. By default whatever the labelers say.
    costs
        What a wrong verdict costs, {(what is right, what is said): cost}; 1 for pairs that are not
        listed. Verdicts are those of least expected cost.
    seed
        Of the draws of labelers; the same seed and answers give the same verdicts.
    journal
        A file that keeps every answer. A run that was interrupted asks for nothing twice.
    truth
        Known right labels, for the report only.
    progress
        Called with a `Progress` after each round.
    student
        A `Student`, which learns from the labels and votes with the panel, for nothing.
    families
        The family of labelers who may share errors, by name: two judges on one model are {"a":
        "llama", "b": "llama"}. They count for as many votes as they are worth (`Auto`). By default
        what the labelers say themselves (`Caller.family`, `family:` of a judge).
    gold
        Known right labels of some items, to learn from in every round (docs/gold.md).
    asked
        Those of the items with gold that were chosen (`questions`), and not drawn at random.
    growth
        How many labels a round adds, as a share of those so far. Larger rounds are fewer, and know
        less when they choose: for labelers that take hours to answer.
    expert_share
        The share of the budget, which is in money, for the labeler that is `trusted` (`Caller`):
        asked at the end about the least sure items, whose verdicts its labels are. By default 0.1
        if there is one.
    alone
        With `gold`: what may be lost, as a share of right verdicts such as 0.01. Everybody labels
        the items with gold and as many others, if that takes a third of the budget at most, and
        whoever is expected to lose no more than this to all of them labels the rest alone.

    Examples
    --------
    >>> from venire.batch import Caller
    >>> posts = {f"post-{i}": i for i in range(200)}
    >>> def skilled(one_in):
    ...     return lambda i: i % 2 if (i * 7919 + one_in) % one_in else 1 - i % 2
    >>> panel = [Caller("small", skilled(4), 0.01), Caller("medium", skilled(6), 0.02),
    ...          Caller("large", skilled(25), 0.05)]
    >>> done = label(posts, panel, Budget(money=10))
    >>> round(done.spent, 6) <= 10, done.verdicts["post-7"].label
    (True, 1)
    """
    work_items, everybody = as_items(items), as_callers(labelers)
    whole = limit = check_limits(work_items, everybody, budget, target)
    if classes is not None:
        _check_gold(gold, classes)
    callers, trusted = _parted(everybody, expert_share)
    money = 0.0
    if trusted is not None:
        limit, money = reserve(limit, expert_share, [trusted.price])
        seen = [i for i in work_items if i.eligible is None or trusted.id in i.eligible]
        work_items = tuple(_without(i, trusted.id) for i in work_items)
    kin = families or {c.id: c.family for c in callers if c.family is not None}
    work = Work.of(work_items, [c.id for c in callers], target)
    work = replace(work, families=kin or None, asked=frozenset(asked))
    contents = [item.content for item in work_items]
    pupil = None if student is None else student.join_batch(contents)
    with ExitStack() as stack:
        kept = None
        if journal:
            own_digests = {c.id: c.digest for c in everybody if c.digest is not None}
            names = [item.id for item in work_items]
            kept = stack.enter_context(Journal(journal, names, own_digests))
        source = stack.enter_context(Live(work, work_items, callers, classes, kept, limit))
        expert = None
        if trusted is not None:
            able = [replace(item, eligible=None) for item in seen]
            own, purse = Work.of(able, [trusted.id]), Budget(money=money)
            asked_too = Live(own, able, [trusted], classes, kept, purse, source)
            expert = Expert(trusted.id, own, stack.enter_context(asked_too), money)
        terms = Terms(limit, costs, seed, truth, progress, pupil, gold, growth, alone)
        done = _run(work, source, terms, expert)
    return replace(done, budget=whole, stale=stale_words(kept.stale) if kept else ())


def _parted(
    callers: Sequence[Caller], share: float | None
) -> tuple[tuple[Caller, ...], Caller | None]:
    """The panel, and the expert if there is one."""
    panel = tuple(caller for caller in callers if not caller.trusted)
    trusted = [caller for caller in callers if caller.trusted]
    if len(trusted) > 1:
        names = ", ".join(repr(one.id) for one in trusted)
        raise InputError(f"got {names} as trusted, expected one expert: mark one of them only")
    if share is not None and not trusted:
        raise InputError(
            "got a share for an expert and no expert: mark a labeler as trusted, or leave out the "
            "share"
        )
    if not panel:
        raise InputError("got an expert and nobody else, expected other labelers too")
    return panel, trusted[0] if trusted else None


def _without(item: BatchItem, labeler: str) -> BatchItem:
    return item if item.eligible is None else replace(item, eligible=item.eligible - {labeler})


def label_recorded(
    labels: Any,
    budget: Budget | float | None = None,
    *,
    prices: Mapping[Any, float] | None = None,
    target: float | None = None,
    costs: Costs | None = None,
    seed: int = 0,
    truth: Mapping[Any, Hashable] | None = None,
    progress: Watch | None = None,
    student: Teachable | None = None,
    contents: Mapping[Any, Any] | None = None,
    families: Families | None = None,
    gold: Gold | None = None,
    asked: Collection[Hashable] = (),
    growth: float = GROWTH,
    expert: Mapping[Any, Hashable] | None = None,
    expert_price: float | None = None,
    expert_share: float | None = None,
    alone: float | None = None,
) -> Labelled:
    """Try a budget on labels that are there already: only those that are bought are looked at.

    `labels` is a table in any form (`as_table`); `prices` says what a label of each labeler costs,
    by default 1. A student is shown the `contents` of the items, by id. `expert` has what an expert
    would say of each item, at `expert_price`. The other arguments are those of `label`.

    >>> rows = [(i, w, i % 2) for i in range(40) for w in "abcde"]
    >>> done = label_recorded(rows, Budget(labels=80), truth={i: i % 2 for i in range(40)})
    >>> done.asked <= 80, done.accuracy
    (True, 1.0)
    """
    table = as_table(labels)
    limit = _budget(budget, target, False)
    _check_gold(gold, table.classes)
    names = list(table.labelers)
    if prices is not None:
        missing = next((name for name in names if name not in prices), None)
        if missing is not None:
            raise InputError(f"got no price for labeler {missing!r}, expected one for each")
    price = np.array([1.0 if prices is None else float(prices[name]) for name in names])
    pupil = None
    if student is not None:
        if contents is None:
            raise InputError(
                "got a student without contents, expected the contents that it learns from"
            )
        pupil = student.join_batch([contents.get(item) for item in table.items])
    source, work = Recorded(table, price), recorded_work(table, target)
    work = replace(work, families=families, asked=frozenset(asked))
    whole, trusted = limit, None
    if expert is not None:
        limit, money = reserve(limit, expert_share, [expert_price or 0.0])
        codes = truth_codes(expert, table.items, source.classes)
        known = np.flatnonzero((codes >= 0) & (codes < len(table.classes)))
        rows = known, np.zeros_like(known), codes[known]
        said = LabelTable.from_codes(*rows, table.items, ["expert"], table.classes)
        told = Recorded(said, np.array([expert_price], np.float64))
        own = recorded_work(said)
        seen = tuple(table.items[i] for i in known.tolist())
        own = replace(own, items=seen, start=np.arange(len(seen) + 1))
        trusted = Expert("expert", own, told, money)
    elif expert_price is not None or expert_share is not None:
        raise InputError(
            "got a price or a share for an expert and no labels of one: give expert=, or --expert"
        )
    terms = Terms(limit, costs, seed, truth, progress, pupil, gold, growth, alone)
    done = _run(work, source, terms, trusted)
    return replace(done, budget=whole)


def _run(work: Work, source: Source, terms: Terms, expert: Expert | None) -> Labelled:
    book, curve = run_rounds(work, source, terms)
    if not (book.said >= 0).any():
        poor = "the budget is below the price of a label"
        nothing = f"of {book.labels} answers none was a label: does the function return it?"
        why = source.trouble or (nothing if book.labels else poor)
        raise InputError(f"no label was bought: {why}")
    unsaid = _unsaid(terms.gold, source.classes)
    if unsaid:
        warnings.warn(
            f"nobody said {', '.join(map(repr, unsaid))}, so gold of that class taught nothing: "
            f"the labels are {', '.join(map(repr, source.classes))}",
            stacklevel=3,
        )
    return settle(book, curve, None if expert is None else consult(book, expert))


def _unsaid(gold: Gold | None, classes: Names) -> list[Any]:
    """The classes of gold that are not among these."""
    said = list(dict.fromkeys((gold or {}).values()))
    return [k for k, named in zip(said, like(said, classes), strict=True) if named not in classes]


def _check_gold(gold: Gold | None, classes: Names) -> None:
    odd = _unsaid(gold, classes)
    if odd:
        raise InputError(
            f"gold has the label {odd[0]!r}, which is not one of the classes {list(classes)}: name "
            "all of them in classes, or correct it"
        )


def check_limits(
    items: Sequence[BatchItem],
    labelers: Iterable[Any],
    budget: Budget | float | None,
    target: float | None,
) -> Budget | None:
    """The budget, if a batch may run with it: there is one or a target, and prices for money."""
    limit = _budget(budget, target, any(item.target for item in items))
    if limit is not None and limit.money is not None and limit.labels is None:
        callers = as_callers(labelers)
        _check_prices([c.price for c in callers], [c.call for c in callers])
    return limit


def _budget(budget: Budget | float | None, target: float | None, own: bool) -> Budget | None:
    if budget is None:
        if target is None and not own:
            raise InputError("got neither a budget nor a target, expected at least one of them")
        return None
    given = budget if isinstance(budget, Budget) else Budget(money=budget)
    if given.per_day:
        raise InputError("got a budget per day, expected one for the whole batch: drop per_day")
    return given


def _check_prices(prices: Sequence[float], calls: Sequence[Any]) -> None:
    """A budget in money without prices would never be spent."""
    objects = [getattr(call, "__self__", None) for call in calls]
    told = any(hasattr(one, "answer") and not hasattr(one, "price") for one in objects)
    if not any(prices) and not told:  # else the answers may tell what they cost
        raise InputError(
            "got a budget in money and labelers without a price, expected a price for them: give "
            "Caller(..., price=...), price: {input, output} of judges, or Budget(labels=...)"
        )
