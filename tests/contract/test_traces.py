"""Phoenix, MLflow and Langfuse, both ways: the same checks of the doubles and of real servers.

The real ones are heavy: start them from their packages, and name them by VENIRE_PHOENIX_URL and
VENIRE_MLFLOW_URL.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.traces import Kept, doubles
from venire.cli import main
from venire.connectors.traces.phoenix import Phoenix
from venire.connectors.traces.source import Found, give_verdicts
from venire.errors import InputError
from venire.tools.http import ApiDown, ApiError

PHOENIX, MLFLOW = "VENIRE_PHOENIX_URL", "VENIRE_MLFLOW_URL"
SKIP = "no server: start one, and set {}"


@pytest.fixture(scope="module")
def double() -> Iterator[str]:
    with doubles() as made:
        yield made.url


@pytest.fixture(params=["phoenix", "mlflow", "langfuse", "real phoenix", "real mlflow"])
def kept(request: pytest.FixtureRequest, double: str) -> Kept:
    program = request.param.split()[-1]
    if not request.param.startswith("real"):
        return Kept(program, double)
    variable = PHOENIX if program == "phoenix" else MLFLOW
    if variable not in os.environ:
        pytest.skip(SKIP.format(variable))
    return Kept(program, os.environ[variable])


def test_labels_come_once_and_verdicts_go_once(kept: Kept) -> None:
    a, b, c = kept.add_items(3)
    kept.say([(a, "j1", "yes"), (a, "ann", "yes"), (b, "j1", "no")])
    kept.say([(a, "j1", "no")])  # it thought again
    found = asyncio.run(kept.read())
    assert sorted(found.labels) == sorted([(a, "j1", "no"), (a, "ann", "yes"), (b, "j1", "no")])
    assert found.traces == 3
    verdicts = {a: ("yes", 0.9), b: ("no", 0.7), "nowhere": ("no", 0.5)}
    counts = {"written": 2, "revised": 0, "unchanged": 0, "missing": 1}
    assert asyncio.run(kept.give(verdicts)) == counts
    counts = {"written": 0, "revised": 0, "unchanged": 2, "missing": 1}
    assert asyncio.run(kept.give(verdicts)) == counts
    ours = asyncio.run(kept.ours())
    why = "confidence 0.90 by 2 labels; yes by ann (skill 0.90); no by j1"
    assert ours[a] == [("yes", 0.9, why)]
    assert (len(ours[b]), ours[c]) == (1, [])
    revised = asyncio.run(kept.give({**verdicts, b: ("yes", 0.8)}))
    assert (revised["revised"], revised["unchanged"]) == (1, 1)
    assert [one[:2] for one in asyncio.run(kept.ours())[b]] == [("yes", 0.8)]
    assert sorted(asyncio.run(kept.read()).labels) == sorted(found.labels)  # ours are not labels


def test_what_is_expected_is_gold(kept: Kept) -> None:
    if kept.program != "mlflow":
        pytest.skip("only MLflow knows expectations")
    a, b = kept.add_items(2)
    kept.say([(a, "j1", "yes"), (b, "j1", "no")])
    kept.say([(a, "ann", "no")], kind="expectation")
    found = asyncio.run(kept.read())
    assert (len(found.labels), found.gold) == (2, {a: "no"})


def test_what_is_wrong_is_said(kept: Kept) -> None:
    async def read(url: str | None, project: str | None) -> None:
        async with kept.source(url, project) as source:
            await Found.read(source)

    with pytest.raises(ApiError, match=r"got 404.*check --project"):
        asyncio.run(read(None, "nobody"))
    with pytest.raises(InputError, match="got the address 'here'"):
        kept.source("here")


def test_who_is_not_there_is_waited_for_and_then_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("venire.connectors.traces.source.RETRY_SECONDS", 0.2)

    async def read() -> None:
        async with Phoenix("http://127.0.0.1:9", "p", "correct") as source:
            await Found.read(source)

    with pytest.raises(ApiDown, match=r"Phoenix at http://127.0.0.1:9 cannot be reached"):
        asyncio.run(read())


def test_a_round_trip_of_200_items_that_is_cut_off_on_the_way(kept: Kept, tmp_path: Path) -> None:
    """Commands as in docs/traces.md; the writing is cut off at a page, and then run again."""
    draw, count = random.Random(7), 200
    ids = kept.add_items(count)
    truth = {id: draw.choice(["yes", "no"]) for id in ids}
    right = {"j1": 0.8, "j2": 0.75, "ann": 0.95}
    other = {"yes": "no", "no": "yes"}
    kept.say(
        [
            (id, who, truth[id] if draw.random() < p else other[truth[id]])
            for id in ids
            for who, p in right.items()
        ]
    )
    at = ["--project", kept.project, "--name", "correct"]
    labels, verdicts, skills = (tmp_path / f"{x}.csv" for x in ("labels", "verdicts", "skills"))
    assert main(["import", kept.program, kept.url, *at, "--to", str(labels)]) == 0
    assert len(labels.read_text().splitlines()) == 1 + 3 * count
    assert main(["aggregate", str(labels), "--out", str(verdicts), "--skills", str(skills)]) == 0

    async def cut_off() -> None:
        rows = [line.split(",") for line in verdicts.read_text().splitlines()[1:]]
        async with kept.source() as source:
            async for page in source.pages():
                some = {row[0]: (row[1], float(row[2])) for row in rows}
                half = {trace.id: some[trace.id] for trace in page[::2]}
                await give_verdicts(source, half, {})
                return

    asyncio.run(cut_off())
    give = ["export", "--what", kept.program, "--to", kept.url, *at]
    for _ in range(2):
        assert main([*give, "--verdicts", str(verdicts), "--skills", str(skills), "--json"]) == 0
    ours = asyncio.run(kept.ours())
    assert {id: len(ours[id]) for id in ids} == dict.fromkeys(ids, 1)
    assert sum(ours[id][0][0] == truth[id] for id in ids) > 0.85 * count


def test_some_traces_are_found_by_their_ids(kept: Kept) -> None:
    a, b, _ = kept.add_items(3)
    kept.say([(a, "j1", "yes")])

    async def read() -> dict[str, int]:
        async with kept.source() as source:
            ids = [a, b, f"tr-{'0' * 32}" if kept.program == "mlflow" else "0" * 16]
            return {trace.id: len(trace.notes) for trace in await source.some(ids)}

    assert asyncio.run(read()) == {a: 1, b: 0}


def test_reasons_are_read(kept: Kept) -> None:
    (a,) = kept.add_items(1)
    kept.say([(a, "j1", "yes")], why=" {who} looked ")
    kept.say([(a, "ann", "no")])

    async def read() -> dict[str, str | None]:
        async with kept.source() as source:
            (trace,) = await source.some([a])
            return {note.labeler: note.why for note in trace.notes}

    assert asyncio.run(read()) == {"j1": "j1 looked", "ann": None}


def test_a_trace_of_langfuse_leaves_its_queue_with_its_verdict() -> None:
    with doubles() as made:
        kept = Kept("langfuse", made.url)
        a, b = kept.add_items(2)
        kept.say([(a, "j1", "yes"), (b, "ann", "no")])
        asyncio.run(kept.give({a: ("yes", 0.9)}))
        (queue,) = made.state["queues"].values()
        assert {one["objectId"]: one["status"] for one in queue["items"]} == {
            a: "COMPLETED",
            b: "PENDING",
        }
        assert sorted(asyncio.run(kept.read()).labels) == sorted(
            [(a, "j1", "yes"), (b, "ann", "no")]
        )
