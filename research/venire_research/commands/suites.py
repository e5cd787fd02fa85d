"""The other suites of `venire compare`: `trust-2` and equal labels."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from venire.cli.shared import screen
from venire.errors import InputError
from venire_research.commands.parallel import executor_of, say_long, say_resumable

if TYPE_CHECKING:
    from venire_research.common.sheets import Sheet

__all__ = ["Order", "equal_labels", "trust"]

Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Order:
    """The options of the command line."""

    policies: Sequence[str]
    names: Sequence[str]
    learning: str | None
    seeds: int | None
    quick: bool
    data: Path | None
    out: Path
    jobs: int
    cluster: str | None
    as_json: bool
    command: str


@dataclass(frozen=True)
class _Found:
    """The results, ready to be shown and written."""

    suite: str
    rows: Rows
    lines: Rows
    shown: Sequence[Sheet]
    written: Sequence[Sheet]
    said: Sequence[str]
    files: tuple[str, str, str] = field(default=("", "", ""))


def trust(order: Order) -> None:
    """Run `trust-2`: adversarial worlds."""
    from venire.cli.shared.callables import policy_of
    from venire.scheduling.by_name import learning_named
    from venire_research.trust import SUITE, world_named
    from venire_research.trust.comparison import compare
    from venire_research.trust.summary import concluding, sheets, summarise

    for name in order.names:
        world_named(name)
    policies = [policy_of(name) for name in order.policies] or None
    how = None if order.learning is None else learning_named(order.learning)
    if order.learning is not None and how is None:
        raise InputError(
            f"got --learning {order.learning}, expected a learning method: {SUITE} measures those"
        )
    taught = None if how is None else [how]

    def run(**kept: Any) -> Rows:
        return compare(
            order.names, order.seeds, policies=policies, learning=taught, quick=order.quick, **kept
        )

    def find(rows: Any) -> _Found:
        lines = summarise(rows)
        tables = sheets(lines)
        files = ("trust.csv", "trust-summary.csv", "trust.md")
        return _Found(SUITE, rows, lines, tables, tables, concluding(lines), files)

    _carry_out(order, run, find)


def equal_labels(order: Order) -> None:
    """Run `equal-labels-3`: venire against rivals with as many labels, on real label sets."""
    from venire.cli.shared.callables import policy_of
    from venire.scheduling.by_name import learning_named
    from venire_research.equal_labels.comparison import compare
    from venire_research.equal_labels.measures import SUITE
    from venire_research.equal_labels.replay import sets_in
    from venire_research.equal_labels.summary import concluding, sheets, skipped, summarise

    sets_in(order.data, order.names)
    if len(order.policies) > 1:
        raise InputError(f"got {len(order.policies)} policies, expected one for equal labels")
    policy = policy_of(order.policies[0]) if order.policies else None
    how = None if order.learning is None else learning_named(order.learning)
    if order.learning is not None and how is None:
        raise InputError(
            f"got --learning {order.learning}, expected a learning method: the competences in a "
            "real label set are unknown"
        )

    def run(**kept: Any) -> Rows:
        return compare(
            order.names, order.seeds, data=order.data, quick=order.quick, policy=policy,
            learning=how, **kept,
        )  # fmt: skip

    def find(rows: Any) -> _Found:
        lines = summarise(rows)
        said = [*concluding(lines), *filter(None, [skipped(lines)])]
        files = ("equal-labels.csv", "equal-labels-summary.csv", "equal-labels.md")
        return _Found(SUITE, rows, lines, sheets(lines), sheets(lines, full=True), said, files)

    _carry_out(order, run, find)


def _carry_out(order: Order, run: Callable[..., Rows], find: Callable[[Rows], _Found]) -> None:
    """Run with finished cells kept, write the files, and show the results."""
    from venire_research.commands.compare import STORE
    from venire_research.common.files import make_folder
    from venire_research.sweeps.store import Store

    start = time.perf_counter()
    make_folder(order.out)
    bar: AbstractContextManager[screen.Progress | None] = screen.bar(1, "cell", "adding up")
    try:
        with (
            executor_of(order.jobs, order.cluster) as executor,
            bar as progress,
            Store(order.out / STORE) as store,
        ):
            watch = say_long(progress, order.cluster)
            rows = run(store=store, executor=executor, progress=watch)
    except KeyboardInterrupt:
        say_resumable(order.out / STORE)
        raise
    found = find(rows)
    _save(order, found)
    if order.as_json:
        record = {
            "suite": found.suite, "quick": order.quick, "command": order.command,
            "out": str(order.out), "summary": list(found.lines), "rows": list(found.rows),
            "conclusions": list(found.said),
        }  # fmt: skip
        print(json.dumps(record, indent=2, allow_nan=False))
    else:
        _show(order, found, time.perf_counter() - start)


def _save(order: Order, found: _Found) -> None:
    from venire_research.common.files import as_csv, write_all

    text = [sheet.markdown() for sheet in found.written]
    text += [f"- {line}" for line in found.said]
    head = f"Made by `{order.command}`, suite `{found.suite}`{', a quick look' * order.quick}.\n"
    contents = (
        as_csv(found.rows),
        as_csv(found.lines, list(dict.fromkeys(key for line in found.lines for key in line))),
        "\n".join([head, *text]) + "\n",
    )
    encoded = (content.encode() for content in contents)
    write_all(order.out, dict(zip(found.files, encoded, strict=True)))


def _show(order: Order, found: _Found, seconds: float) -> None:
    from rich.console import Console

    console = Console(emoji=False, highlight=False, soft_wrap=True)
    for piece in (piece for sheet in found.shown for piece in sheet.fitting(console.width)):
        console.print(piece.drawn())
        console.print()
    for line in found.said:
        console.print(line, markup=False)
    saved = f"\nSaved {', '.join(found.files)} in {order.out}. That took {seconds:.0f} s."
    console.print(saved, markup=False)
