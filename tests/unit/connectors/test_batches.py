"""Questions as batches: what a batch may do to them, and what a kill leaves behind."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.batch_server import BatchServer, batching
from tests.judge_server import CLASSES, truth
from venire.connectors.judges.answers import Answer, Cache, Stopped
from venire.connectors.judges.batches import BatchBook
from venire.connectors.judges.config import JudgeConfig
from venire.connectors.judges.judge import Judge
from venire.errors import FileError

TEXTS = [f"{'BUY' if n % 3 else 'see'} {n}" for n in range(40)]
RIGHT = [truth(text)[0] for text in TEXTS]
FULL = 45 * 2 / 1_000_000


def config(url: str, **more: Any) -> JudgeConfig:
    said = {"id": "strict", "model": "m", "prompt": "{{ text }}", "classes": CLASSES}
    price = {"input": 2.0, "output": 2.0}
    return JudgeConfig.read({**said, "base_url": url, "price": price, **more})


def ask(path: Path, settings: JudgeConfig, texts: list[str] | None = None) -> list[Any]:
    """The answers of a judge that sends batches; faults are among them."""

    async def all_of() -> list[Any]:
        with BatchBook(path, quiet=0.05) as book:
            async with Judge(settings, Cache(), book=book) as judge:
                assert await judge.probe({"text": "x"}) == ""
                each = (judge.answer({"text": text}) for text in texts or TEXTS)
                return await asyncio.gather(*each, return_exceptions=True)

    return asyncio.run(all_of())


def row(path: Path, settings: JudgeConfig) -> dict[str, Any]:
    with BatchBook(path) as book:
        return book.record([settings])[0]


def labels(said: list[Any]) -> list[Any]:
    return [one.label if isinstance(one, Answer) else one for one in said]


def test_a_round_is_one_batch_at_half_the_price(tmp_path: Path) -> None:
    path = tmp_path / "b"
    with batching() as server:
        said = ask(path, config(server.url))
        again = ask(path, config(server.url))
    assert labels(said) == labels(again) == RIGHT
    assert all(one.cost == pytest.approx(FULL / 2) for one in said)
    assert (len(server.batches), server.questions) == (1, 40)
    assert server.bodies == []
    found = row(path, config("http://x"))
    assert (found["batches"], found["questions"], found["answers"]) == (1, 40, 40)
    assert found["cost"] == found["saved"]
    assert found["cost"] == pytest.approx(40 * FULL / 2)


@pytest.mark.parametrize(
    ("outcomes", "settings"),
    [
        (["expired"], {}),
        (["expired", "expired"], {"missing": 0.5}),
        ([], {"missing": 0.5}),
        (["queue"], {}),
        ([], {"shares": {"500": 0.2, "refusal": 0.1}}),
        ([], {"busy": 2, "metadata": False}),
    ],
)
def test_every_question_is_answered_once(
    tmp_path: Path, outcomes: list[str], settings: dict[str, Any]
) -> None:
    path = tmp_path / "b"
    with batching(*outcomes, **settings) as server:
        wanted = config(server.url, num_retries=9)
        said = ask(path, wanted)
        again = ask(path, wanted)
    assert labels(said) == labels(again) == RIGHT
    spent = sum(one.cost for one in said)
    assert sum(one.cost for one in again) == pytest.approx(spent)
    found = row(path, wanted)
    assert found["questions"] == server.questions
    assert found["cost"] == pytest.approx(spent)
    assert found["cost"] == pytest.approx(server.billed["tokens"] * 1e-6)


def test_a_batch_that_fails_stops_the_judge(tmp_path: Path) -> None:
    with batching("failed") as server:
        said = ask(tmp_path / "b", config(server.url))
    assert all(isinstance(one, Stopped) for one in said)
    assert "no such model" in str(said[0])
    with batching(missing=1.0) as server:
        said = ask(tmp_path / "c", config(server.url))
    assert "20 batches in a row gave no answer" in str(said[0])


def test_a_server_without_batches_is_told_apart(tmp_path: Path) -> None:
    with batching() as server, pytest.raises(Stopped, match="leave --batch out"):
        ask(tmp_path / "b", config(server.url.removesuffix("/v1") + "/v1/batches/x"))


def test_an_old_file_of_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "b"
    path.write_text('{"format": "other"}\n')
    with pytest.raises(FileError, match="not a file of batches"):
        BatchBook(path)


class Killed(BaseException):
    """Stands for SIGKILL: nothing runs after it."""


STEPS = ["POST /files", "POST /batches", "GET /batches/X", "GET /files/X/content"]


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("metadata", [True, False])
def test_a_run_that_ends_anywhere_is_continued(tmp_path: Path, step: str, metadata: bool) -> None:
    path = tmp_path / "b"
    with batching(missing=0.5, metadata=metadata) as server:
        wanted = config(server.url)
        ended = asyncio.run(cut_off(path, wanted, server, step))
        assert ended
        said = ask(path, wanted)
    assert labels(said) == RIGHT
    found = row(path, wanted)
    assert found["questions"] == server.questions
    assert found["cost"] == pytest.approx(server.billed["tokens"] * 1e-6)
    assert sum(one.cost for one in said) == pytest.approx(found["cost"])


async def cut_off(path: Path, settings: JudgeConfig, server: BatchServer, step: str) -> bool:
    """Ask, and drop everything when the server has taken a step, before its response."""
    loop, reached = asyncio.get_running_loop(), asyncio.Event()

    def watch(taken: str) -> None:
        if taken == step:
            server.watch = ignore
            loop.call_soon_threadsafe(reached.set)
            raise Killed

    ignore: Callable[[str], None] = server.watch
    server.watch = watch
    book = BatchBook(path, quiet=0.05)
    judge = Judge(settings, Cache(), book=book)
    asking = asyncio.gather(*(judge.answer({"text": t}) for t in TEXTS), return_exceptions=True)
    await asyncio.wait_for(reached.wait(), 280)
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    await judge.close()
    book.__exit__()
    return True
