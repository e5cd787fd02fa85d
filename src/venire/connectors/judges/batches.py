r"""Questions sent as batches, at a discount: OpenAI's `/v1/files` and `/v1/batches`.

A judge with a `BatchLine` posts its questions as usual; those that wait at the same time are
uploaded as one file, and answered when the batch has ended, in minutes or in a day. Whatever was
sent is in the `BatchBook`, a file of JSON Lines that is on disk before the next step is taken:
which questions a batch has, its file, its id, and every answer that came. A run that was killed
reads it, waits for the batches that are under way, and pays for no answer twice. A kill between
upload and creation leaves a file of a known name: its batch is looked for by that name before
anything is sent again. Questions that a batch left unanswered, because it expired or lost them, go
into the next one, as long as batches answer anything at all.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import secrets
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

from venire.connectors.judges.answers import digest, token_count
from venire.connectors.judges.config import JudgeConfig
from venire.errors import FileError
from venire.tools.http import ApiDown, ApiError, JsonApi, doubled
from venire.tools.untrusted import parse_json, scrubbed

T = TypeVar("T")

LOG = logging.getLogger("venire.judges")

FORMAT: Final = "venire batches 1"

#: Questions and bytes of a batch: OpenAI takes 50,000 and 200 MB.
MOST_QUESTIONS, MOST_BYTES = 10_000, 100_000_000

#: Seconds without another question after which those that wait are sent.
QUIET: Final = 1.0

#: Seconds between two looks at a batch: the first and the longest wait.
FIRST_LOOK, LONGEST_LOOK = 0.5, 30.0

#: Batches in a row without any answer after which the judge stops: those that expired, which takes
#: a day, and others. The last question of a round is often alone in its batch.
EXPIRED, BARREN = 3, 20

#: Pages of a hundred batches or files that are searched for one of ours.
PAGES: Final = 20

_ENDED: Final = frozenset({"completed", "failed", "expired", "cancelled"})


class Refused(Exception):
    """No batch will be taken, whatever is in it."""


class _TooMuch(Exception):
    """More is queued than the server allows."""


@dataclass
class _Batch:
    """A batch that was begun: `id` is None until the server has named it."""

    name: str
    judge: str
    questions: tuple[str, ...]
    file: str | None = None
    id: str | None = None
    ended: bool = False


class BatchBook:
    """What was sent in batches and what came back, on disk.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "out.batches")
    ...     with BatchBook(path) as book:
    ...         _ = book.begin("strict", ["q-0"])
    ...     with BatchBook(path) as book:
    ...         [batch.questions for batch in book.under_way("strict")]
    [('q-0',)]
    """

    def __init__(
        self, path: str | Path, say: Callable[[str], None] = LOG.info, quiet: float = QUIET
    ) -> None:
        """`say` is told of batches; `quiet` is how long questions are gathered, in seconds."""
        self.path, self.say, self.quiet = Path(path), say, quiet
        self._batches: dict[str, _Batch] = {}
        self._answers: dict[str, tuple[str, int, Any]] = {}
        try:
            whole = self._read() if self.path.exists() else 0
            self._file = open(self.path, "ab")  # noqa: SIM115
            self._file.truncate(whole)
        except OSError as error:
            raise FileError(self.path, None, f"cannot be written: {error.strerror}") from None
        if not whole:
            self._write([{"format": FORMAT}])

    def __enter__(self) -> BatchBook:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        self._file.close()

    def answer(self, question: str) -> tuple[int, bytes] | None:
        """The status and the body of the answer to a question, if it came."""
        held = self._answers.get(question)
        return None if held is None else (held[1], json.dumps(held[2]).encode())

    def under_way(self, judge: str) -> list[_Batch]:
        return [b for b in self._batches.values() if b.judge == judge and not b.ended]

    def begin(self, judge: str, questions: Iterable[str]) -> _Batch:
        """Note that a batch will be sent."""
        batch = _Batch(secrets.token_hex(8), judge, tuple(questions))
        self._note({"batch": batch.name, "judge": judge, "questions": batch.questions})
        return self._batches[batch.name]

    def sent(self, batch: _Batch, file: str, id: str | None = None) -> None:
        self._note({"batch": batch.name, "file": file, "id": id})

    def end(self, batch: _Batch, answers: Mapping[str, tuple[int, Any]]) -> None:
        """Keep the answers of a batch, all of them before it counts as ended."""
        rows = [{"question": q, "status": s, "body": body} for q, (s, body) in answers.items()]
        self._note(*({"judge": batch.judge, **row} for row in rows))
        self._note({"batch": batch.name, "ended": True})

    def record(self, configs: Iterable[JudgeConfig]) -> list[dict[str, Any]]:
        """Of each judge: batches, questions and answers so far, what they cost, what was saved.

        `configs` have the full prices. All runs count that share this file.
        """
        return [self._row(config) for config in configs]

    def _row(self, config: JudgeConfig) -> dict[str, Any]:
        sent = [b for b in self._batches.values() if b.judge == config.id and b.id is not None]
        bodies = [body for judge, _, body in self._answers.values() if judge == config.id]
        used = [body["usage"] for body in bodies if isinstance(body, dict) and body.get("usage")]
        read = sum(token_count(usage, "prompt_tokens") or 0 for usage in used)
        written = sum(token_count(usage, "completion_tokens") or 0 for usage in used)
        full = config.price.of(read, written)
        return {
            "id": config.id,
            "batches": len(sent),
            "questions": sum(len(b.questions) for b in sent),
            "answers": len(bodies),
            "cost": full * (1 - config.batch_discount),
            "saved": full * config.batch_discount,
        }

    def _note(self, *rows: Mapping[str, Any]) -> None:
        self._write(rows)
        for row in rows:
            self._take(row)

    def _write(self, rows: Iterable[Mapping[str, Any]]) -> None:
        self._file.write("".join(json.dumps(row) + "\n" for row in rows).encode())
        self._file.flush()
        os.fsync(self._file.fileno())

    def _read(self) -> int:
        """Read what is there; returns the length of what is whole."""
        content = self.path.read_bytes()
        whole = content.rfind(b"\n") + 1
        for number, line in enumerate(content[:whole].splitlines(), 1):
            try:
                row = parse_json(line)
                if number == 1 and row["format"] != FORMAT:
                    raise ValueError
                self._take(row)
            except (ValueError, KeyError, TypeError, AttributeError):
                message = "is not a file of batches: remove it, or write --out elsewhere"
                raise FileError(self.path, number, message) from None
        return whole

    def _take(self, row: Mapping[str, Any]) -> None:
        if "question" in row:
            self._answers[row["question"]] = (row["judge"], int(row["status"]), row["body"])
        elif "questions" in row:
            batch = _Batch(row["batch"], row["judge"], tuple(row["questions"]))
            self._batches[batch.name] = batch
        elif "ended" in row:
            self._batches[row["batch"]].ended = True
        elif "batch" in row:
            batch = self._batches[row["batch"]]
            batch.file, batch.id = row["file"], row["id"]


@dataclass
class _Ask:
    """A question that waits for its answer."""

    body: Mapping[str, Any]
    answer: asyncio.Future[tuple[int, bytes]]
    out: bool = False


class BatchLine:
    """Posts the questions of one judge as batches; it stands in for `Connections`."""

    def __init__(self, config: JudgeConfig, key: str, book: BatchBook) -> None:
        self._judge, self._key, self._book = config.id, key, book
        self._url = config.base_url
        headers = {"authorization": f"Bearer {key}"} if key else {}
        self._api = JsonApi(
            f"the batch API of judge {config.id}",
            config.base_url,
            headers,
            secret=key,
            hints={
                401: "the key was refused: check the variable of api_key_env",
                404: "the server may have no batches: leave --batch out",
            },
            timeout=config.timeout,
        )
        self._asked: Counter[str] = Counter()
        self._asks: dict[str, _Ask] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._gathering = self._resumed = False

    async def check(self) -> None:
        """See whether the server has batches, for nothing; raises `Refused` if it has not."""
        await self._patient(lambda: self._api.call("GET", "/batches", params={"limit": 1}), 1)

    async def post(self, body: Mapping[str, Any]) -> tuple[int, Mapping[str, str], bytes]:
        """Status, headers and content of the answer; raises `Refused`.

        A run that begins again asks the same questions, and is given the same answers: a question
        is known by its content and by how often this run has asked it before.
        """
        name = digest({"judge": self._judge, "url": self._url, "body": body})[:40]
        question = f"{name}-{self._asked[name]}"
        self._asked[name] += 1
        self._resume()
        held = self._book.answer(question)
        if held is None:
            ask = _Ask(body, asyncio.get_running_loop().create_future())
            ask.out = any(question in b.questions for b in self._book.under_way(self._judge))
            self._asks[question] = ask
            if not ask.out and not self._gathering:
                self._gathering = True
                self._start(self._gather())
            try:
                held = await ask.answer
            finally:
                del self._asks[question]
        return held[0], {}, held[1]

    def scrub(self, text: str) -> str:
        return scrubbed(text, self._key)

    async def close(self) -> None:
        """Close the connections; batches go on without us."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._api.__aexit__()

    def _start(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(self._guarded(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _guarded(self, work: Awaitable[None]) -> None:
        """Whatever goes wrong is told to those who wait."""
        try:
            await work
        except Exception as fault:
            for ask in list(self._asks.values()):
                if not ask.answer.done():
                    ask.answer.set_exception(fault)

    def _resume(self) -> None:
        """Go on with the batches of an earlier run."""
        if not self._resumed:
            self._resumed = True
            for batch in self._book.under_way(self._judge):
                self._start(self._finish(batch))

    async def _gather(self) -> None:
        """Send what waits, when no more has come for a while."""
        seen = -1
        while seen != len(self._asks):
            seen = len(self._asks)
            await asyncio.sleep(self._book.quiet)
        self._gathering = False
        for part in _parts({q: ask for q, ask in self._asks.items() if not ask.out}):
            for ask in part.values():
                ask.out = True
            self._start(self._carry(part))

    async def _carry(self, asks: dict[str, _Ask]) -> None:
        """Send batches until every question has its answer."""
        barren = expired = 0
        while asks:
            try:
                status = await self._end(await self._create(asks))
            except _TooMuch as much:
                if len(asks) == 1:
                    raise Refused(str(much)) from None
                self._book.say(f"judge {self._judge}: {much}; half of it at a time from now on")
                half = list(asks.items())
                await self._carry(dict(half[: len(half) // 2]))
                await self._carry(dict(half[len(half) // 2 :]))
                return
            left = {q: ask for q, ask in asks.items() if not self._answered(q, ask)}
            if len(left) < len(asks):
                barren = expired = 0
            else:
                barren, expired = barren + 1, expired + (status == "expired")
            if barren >= BARREN or expired >= EXPIRED:
                raise Refused(f"{barren} batches in a row gave no answer")
            asks = left

    async def _finish(self, batch: _Batch) -> None:
        """End a batch of an earlier run, and send again what it has left open."""
        if batch.id is None and not await self._look_for(batch):
            self._book.end(batch, {})
        else:
            self._book.say(f"judge {self._judge}: waiting for batch {batch.id} of an earlier run")
            with suppress(_TooMuch):
                await self._end(batch)
        asks = {q: ask for q in batch.questions if (ask := self._asks.get(q)) is not None}
        await self._carry({q: ask for q, ask in asks.items() if not self._answered(q, ask)})

    def _answered(self, question: str, ask: _Ask) -> bool:
        held = self._book.answer(question)
        if held is not None and not ask.answer.done():
            ask.answer.set_result(held)
        return held is not None

    async def _create(self, asks: Mapping[str, _Ask]) -> _Batch:
        """Upload the questions and make a batch of them."""
        batch = self._book.begin(self._judge, asks)
        lines = (
            {"custom_id": q, "method": "POST", "url": "/v1/chat/completions", "body": ask.body}
            for q, ask in asks.items()
        )
        content = "".join(json.dumps(line) + "\n" for line in lines).encode()
        form = {"file": (_file_name(batch), content, "application/jsonl")}
        uploaded = await self._patient(
            lambda: self._api.call("POST", "/files", files=form, data={"purpose": "batch"})
        )
        file = _text_of(uploaded, "id")
        self._book.sent(batch, file)
        made: dict[str, Any] = {
            "input_file_id": file,
            "endpoint": "/v1/chat/completions",
            "completion_window": "24h",
            "metadata": {"venire": batch.name},
        }
        tries = 0
        while batch.id is None:
            try:
                created = await self._api.call("POST", "/batches", made)
                self._book.sent(batch, file, _text_of(created, "id"))
            except ApiError as error:
                if _queue_full(str(error)):
                    self._book.end(batch, {})
                    raise _TooMuch(str(error)) from None
                raise Refused(str(error)) from None
            except ApiDown as down:  # it may have been made all the same
                tries += 1
                await asyncio.sleep(max(down.wait, _wait(tries)))
                await self._look_for(batch)
        self._book.say(f"judge {self._judge}: batch {batch.id} with {len(asks):,} questions")
        return batch

    async def _look_for(self, batch: _Batch) -> bool:
        """Find the batch that was made of a file of ours, if it was; its id is noted."""
        file = batch.file
        if file is None:
            async for one in self._each("/files", {"purpose": "batch"}):
                if one.get("filename") == _file_name(batch):
                    file = _text_of(one, "id")
                    break
        if file is None:
            return False
        async for one in self._each("/batches", {}):
            named = (one.get("metadata") or {}).get("venire") == batch.name
            if named or one.get("input_file_id") == file:
                self._book.sent(batch, file, _text_of(one, "id"))
                return True
        return False

    async def _each(self, path: str, params: Mapping[str, Any]) -> Any:
        """The newest objects of a list, page by page."""
        after: dict[str, Any] = {}
        for _ in range(PAGES):
            asked = {"limit": 100, **params, **after}
            page = await self._patient(partial(self._api.call, "GET", path, params=asked))
            rows = page.get("data") if isinstance(page, dict) else None
            for row in rows if isinstance(rows, list) else ():
                if isinstance(row, dict):
                    yield row
            if not rows or not page.get("has_more"):
                return
            after = {"after": rows[-1].get("id")}

    async def _end(self, batch: _Batch) -> str:
        """Wait for the end of a batch, and keep its answers; returns how it ended."""
        looks = 0
        while True:
            looks += 1
            found = await self._patient(lambda: self._api.call("GET", f"/batches/{batch.id}"))
            status = _text_of(found, "status").lower()
            if status in _ENDED:
                break
            await asyncio.sleep(_wait(looks))
        answers: dict[str, tuple[int, Any]] = {}
        for file in (found.get("output_file_id"), found.get("error_file_id")):
            if isinstance(file, str) and file:
                path = f"/files/{file}/content"
                text = await self._patient(partial(self._api.call, "GET", path, raw=True))
                answers |= dict(_answers(text or b"", frozenset(batch.questions)))
        self._book.end(batch, answers)
        self._book.say(
            f"judge {self._judge}: batch {batch.id} {status}, {len(answers):,} of "
            f"{len(batch.questions):,} answered"
        )
        if status == "failed" and not answers:
            why = _failure(found)
            raise _TooMuch(why) if _queue_full(why) else Refused(f"the batch failed: {why}")
        return status

    async def _patient(self, call: Callable[[], Awaitable[T]], most: int | None = None) -> T:
        """Call until the server answers: what is queued there is paid for."""
        tries = 0
        while True:
            try:
                return await call()
            except ApiError as error:
                raise Refused(str(error)) from None
            except ApiDown as down:
                tries += 1
                if most is not None and tries >= most:
                    raise Refused(str(down)) from None
                if tries == 1:
                    self._book.say(f"{down}: trying again")
                await asyncio.sleep(max(down.wait, _wait(tries)))


def _wait(n: int) -> float:
    """Seconds before the next look, after n of them."""
    return doubled(FIRST_LOOK, n, LONGEST_LOOK)


def _file_name(batch: _Batch) -> str:
    return f"venire-{batch.name}.jsonl"


def _text_of(said: Any, name: str) -> str:
    value = said.get(name) if isinstance(said, dict) else None
    if not isinstance(value, str):
        raise Refused(f"the batch API answers with something else than OpenAI's: no {name}")
    return value


def _parts(asks: dict[str, _Ask]) -> Iterator[dict[str, _Ask]]:
    """The questions in batches that are not too large."""
    part: dict[str, _Ask] = {}
    size = 0
    for question, ask in asks.items():
        length = len(json.dumps(ask.body)) + 200
        if part and (len(part) == MOST_QUESTIONS or size + length > MOST_BYTES):
            yield part
            part, size = {}, 0
        part[question] = ask
        size += length
    if part:
        yield part


def _answers(content: bytes, asked: frozenset[str]) -> Iterator[tuple[str, tuple[int, Any]]]:
    """The answers in a file of output or errors; questions that were not answered are left out.

    >>> line = b'{"custom_id": "a", "response": {"status_code": 200, "body": {}}, "error": null}'
    >>> list(_answers(line, frozenset("a"))), list(_answers(line, frozenset("b")))
    ([('a', (200, {}))], [])
    """
    for line in content.splitlines():
        try:
            row = parse_json(line)
            question, response = row["custom_id"], row["response"]
            status = int(response["status_code"])
        except (ValueError, KeyError, TypeError):
            continue
        if question in asked:
            yield question, (status, response.get("body"))


def _failure(said: Mapping[str, Any]) -> str:
    """Why a batch failed, in the words of the server."""
    errors = said.get("errors")
    rows = errors.get("data") if isinstance(errors, dict) else None
    words = [f"{row.get('code')}: {row.get('message')}" for row in rows or () if row]
    return "; ".join(words[:3])[:300] or "no reason was given"


def _queue_full(why: str) -> bool:
    return "token_limit_exceeded" in why or "enqueued" in why.lower()
