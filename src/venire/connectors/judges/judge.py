"""`Judge`: a model behind an OpenAI-compatible API as a labeler.

A question is sent when the limits allow it. A 429 makes the whole judge wait for as long as the
server asks; other faults are retried up to `num_retries` times; an answer that is not a label is
asked for again twice. What remains is a `JudgeFault`. A server without `response_format` or
log-probabilities is asked without them from then on. With `answer_first` the judge is asked for an
answer of its own before it sees what it judges, once for all items with the same question. With a
`BatchBook` questions are sent as batches, at a discount.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from venire.connectors.judges.answers import (
    Answer,
    Cache,
    Completion,
    JudgeFault,
    NoLabel,
    NotSure,
    Stopped,
    Unavailable,
    Usage,
    classify,
    digest,
    label_confidence,
    pooled,
    read_label,
    read_rationale,
    token_count,
)
from venire.connectors.judges.batches import MOST_QUESTIONS, BatchBook, BatchLine, Refused
from venire.connectors.judges.config import JudgeConfig
from venire.connectors.judges.prompt import NOT_SURE, Media, Message, Prompt, guessed_tokens, schema
from venire.errors import FetchError, InputError
from venire.tools.http import (
    Closing,
    Connections,
    Halt,
    Limits,
    Lost,
    Patience,
    Reject,
    Retry,
    TooLong,
    key_of,
)

T = TypeVar("T")

LOG = logging.getLogger("venire.judges")

#: How often an answer that is not a label is asked for again.
RE_ASKS = 2

#: Seconds that the first question waits for an answer, and between its tries if nobody listens.
PROBE_SECONDS, PROBES = 10.0, (0.2, 0.5)

#: Tokens of an item, of a label and of some sentences, as long as nothing is known.
GUESSED_INPUT, GUESSED_OUTPUT, GUESSED_TEXT = 200, 10, 100

#: A judge is stopped after this number of rejections in a row that are not the item's fault.
REJECTIONS = 10

#: What a rejection says about a feature that the server does not know.
_WORDS = {
    "response_format": ("response_format", "response format", "json_schema", "json schema"),
    "logprobs": ("logprob",),
}


@dataclass
class _Question:
    """What is asked; without classes, the judge answers in its own words."""

    messages: list[Message]
    classes: tuple[str, ...] = ()


class Judge(Closing):
    """A model as a labeler; `async with` closes its connections.

    async with Judge(JudgeConfig.read({"id": "strict", "model": "gpt-x", ...})) as judge:
        answer = await judge.answer({"text": "Buy now!"})

    >>> Judge(JudgeConfig.read({"id": "strict", "model": "m", "prompt": "{{ text }}",
    ...                         "base_url": "http://127.0.0.1:8000/v1"})).id
    'strict'
    """

    def __init__(
        self,
        config: JudgeConfig,
        cache: Cache | None = None,
        media: Media | None = None,
        book: BatchBook | None = None,
    ) -> None:
        """`cache`, `media` and the `book` of batches may be shared by several judges."""
        self.id, self.config, self.usage = config.id, config, Usage()
        self.family, self.trusted = config.family, config.trusted
        self.digest = config.digest
        self._answered = Cache() if cache is None else cache
        self._media = media or Media(config.files, config.fetch_private)
        self._prompt = Prompt(
            config.prompt,
            config.system,
            answer_first=config.answer_first,
            reference=config.reference,
            rationale=config.rationale,
            not_sure=config.not_sure,
        )
        key = key_of(f"judge {config.id}", config.api_key_env)
        url = f"{config.base_url}/chat/completions"
        self._http: Connections | BatchLine
        if book is None:
            self._http = Connections(url, config.timeout, config.max_parallel, key)
            self._limits = Limits(config.max_parallel, config.rpm, config.tpm)
        else:
            self._http = BatchLine(config, key, book)
            self._limits = Limits(MOST_QUESTIONS)
            self.config = replace(config, price=config.price.less(config.batch_discount))
        given = {"logprobs"} if config.logprobs else set()
        self._features = given | ({"response_format"} - set(config.extra))
        self._rejected = 0
        self._answering: dict[str, asyncio.Event] = {}
        self._owed = 0.0  # what the first question cost, until an answer counts it
        self.stopped: str | None = None

    async def close(self) -> None:
        await self._http.close()

    @property
    def parallel(self) -> int:
        return MOST_QUESTIONS if isinstance(self._http, BatchLine) else self.config.max_parallel

    @property
    def price(self) -> float:
        """What a label costs: the mean so far; before that a guess by the length of its prompt."""
        usage, config = self.usage, self.config
        if usage.labels and usage.cost:
            return usage.cost / usage.labels
        read = len(config.prompt + config.system) // 4 + GUESSED_INPUT
        own = len(config.answer_first) // 4 + GUESSED_INPUT if config.answer_first else 0
        asked = config.votes * self.config.price.of(read, self.written)
        return asked + self.config.price.of(own, own and GUESSED_TEXT)

    @property
    def written(self) -> int:
        """About how many tokens an answer has, for forecasts."""
        return GUESSED_TEXT if self.config.rationale else GUESSED_OUTPUT

    async def answer(self, item: Any, classes: Sequence[str] | None = None) -> Answer:
        """Label an item; raises a `JudgeFault` if there is no label.

        `classes` are those of a stream; those of the configuration must be the same.
        """
        answer = await self.ask(item, classes)
        self.usage.labels += 1
        return answer

    async def ask(self, item: Any, classes: Sequence[str] | None = None) -> Answer:
        """As `answer`, for an answer that is only a part of a label, and is not counted as one."""
        known, (own, cost) = self.classes(classes), await self._own_answer(item)
        cost, self._owed = cost + self._owed, 0.0
        messages = self._prompt.messages(item, known, own)
        votes = (self._vote(messages, tuple(known), n) for n in range(self.config.votes))
        said = await asyncio.gather(*votes, return_exceptions=True)
        return self._pool_votes(said, tuple(known), cost)

    async def probe(self, item: Any, classes: Sequence[str] | None = None) -> str:
        """Ask one question, without retries that take long, to see whether there are answers.

        Raises a `JudgeFault` if there is no way to one: nobody listens, or the key, the model or
        the address is refused. A judge that is busy or slow is not at fault: that is returned.
        A judge that sends batches only looks whether there are any, for nothing. What it cost is a
        part of the cost of the next answer, since the cache answers this question for nothing.
        """
        before = self.usage.cost
        try:
            return await self._probed(item, classes)
        finally:
            self._owed += self.usage.cost - before

    async def _probed(self, item: Any, classes: Sequence[str] | None) -> str:
        if isinstance(self._http, BatchLine):
            try:
                await self._http.check()
            except Refused as refused:
                raise self._stop(str(refused)) from None
            return ""
        known = tuple(self.classes(classes))
        own = "" if self.config.answer_first else None
        messages = self._prompt.messages(item, self.classes(classes), own)
        await self._media.filled(messages)
        key = self._key(messages, 0)
        if self._answered.get(key) is not None:
            return ""
        question = _Question(messages, known)
        for wait in (*PROBES, None):
            try:
                async with asyncio.timeout(PROBE_SECONDS):
                    got, features = await self._send(question)
            except TimeoutError:
                return f"judge {self.id} did not answer within {PROBE_SECONDS:g} seconds"
            if isinstance(got, Retry) and got.kind == "no response" and wait is not None:
                await asyncio.sleep(wait)
                continue
            break
        if isinstance(got, Halt):  # whoever asked says so
            self.stopped = got.why
            raise Stopped(self.id, got.why)
        if isinstance(got, Retry):
            if got.kind == "no response":
                raise Unavailable(self.id, f"no response from {self.config.base_url}: {got.why}")
            return f"judge {self.id} is busy ({got.why})"
        if isinstance(got, Reject):
            with suppress(NoLabel):
                self._reject(got, features)
            return ""
        self.usage.pay(self.config.price, got.usage)
        answer = self._read(got, known)[1]
        if answer is not None:
            self._keep(key, answer)
        return ""

    def forecast(self, items: Sequence[Any]) -> tuple[int, int, int]:
        """How many questions all items are, how many of them the cache answers, and their tokens.

        Tokens are those of the questions that would be asked, four characters each.
        """
        known, asked, cached, read = self.classes(), 0, 0, 0
        questions: set[str] = set()
        for item in items:
            own = None
            if self.config.answer_first:
                first = self._prompt.question(item)
                key = self._key(first, "own")
                held = self._answered.get(key)
                own = str(held["text"]) if held else "x" * 4 * GUESSED_TEXT
                if key not in questions:
                    questions.add(key)
                    cached += held is not None
                    asked += held is None
                    read += 0 if held else guessed_tokens(first)
            messages = self._prompt.messages(item, known, own)
            for n in range(self.config.votes):
                if self._answered.get(self._key(messages, n)) is not None:
                    cached += 1
                    continue
                asked += 1
                read += guessed_tokens(messages)
        return asked, cached, read

    def classes(self, classes: Sequence[str] | None = None) -> Mapping[str, str]:
        """The classes with their descriptions: its own, which must be those of the stream."""
        own = self.config.classes
        if not own and classes is None:
            raise InputError(f"judge {self.id} has no classes: list them in the file of judges")
        if own and classes is not None and set(classes) != set(own):
            raise InputError(
                f"judge {self.id} has the classes {list(own)}, expected {list(classes)} as in the "
                "stream: change the file of judges, or leave its classes out"
            )
        return own or dict.fromkeys(classes or (), "")

    def _pool_votes(
        self, said: Sequence[Answer | BaseException], classes: Sequence[str], cost: float
    ) -> Answer:
        """The answer of all votes, of which more than half must be there; `cost` comes on top."""
        votes = [one for one in said if isinstance(one, Answer)]
        faults = [one for one in said if isinstance(one, BaseException)]
        for fault in faults:
            if not isinstance(fault, JudgeFault):
                raise fault
        cost += sum(one.cost for one in said if isinstance(one, Answer | JudgeFault))
        if 2 * len(votes) <= len(said):
            worst = min(faults, key=_severity)
            assert isinstance(worst, JudgeFault)
            worst.cost = cost
            raise worst
        if self.config.votes == 1:
            return replace(votes[0], cost=cost)
        shares = pooled(votes, classes)
        best = max(shares.values())
        label = next((one.label for one in votes if shares[one.label] == best), votes[0].label)
        why = next((one.rationale for one in votes if one.label == label and one.rationale), None)
        return Answer(label, shares[label], cost, why)

    async def _own_answer(self, item: Any) -> tuple[str | None, float]:
        """What the judge answers itself, and what that cost; asked once for each question."""
        if not self.config.answer_first:
            return None, 0.0
        messages = self._prompt.question(item)
        key = self._key(messages, "own")
        while True:
            held = self._answered.get(key)
            if held is not None and isinstance(held.get("text"), str):
                self.usage.cached += 1
                return held["text"], 0.0
            if key not in self._answering:
                break
            await self._answering[key].wait()
        self._answering[key] = asyncio.Event()
        try:
            text, cost = await self._until(_Question(messages), _own_text)
            self._answered.put(key, {"text": text})
        finally:
            self._answering.pop(key).set()
        return text, cost

    async def _vote(self, messages: list[Message], classes: tuple[str, ...], n: int) -> Answer:
        """One answer, out of the cache or of the model."""
        key = self._key(messages, n)
        held = self._answered.get(key)
        known = (*classes, NOT_SURE) if self.config.not_sure else classes
        if held is not None and held.get("label") in known:
            self.usage.cached += 1
            kept = Answer(held["label"], held.get("confidence"), 0.0, held.get("rationale"))
            return self._refuse_not_sure(kept)
        question = _Question(messages, classes)
        answer, spent = await self._until(question, lambda done: self._read(done, classes))
        self._keep(key, answer)
        return self._refuse_not_sure(replace(answer, cost=spent))

    def _refuse_not_sure(self, answer: Answer) -> Answer:
        """The answer, unless it is "not sure"."""
        if self.config.not_sure and answer.label == NOT_SURE:
            self.usage.unsure += 1
            raise NotSure(self.id, "it is not sure", answer.cost)
        return answer

    def _keep(self, key: str, answer: Answer) -> None:
        kept: dict[str, Any] = {"label": answer.label, "confidence": answer.confidence}
        if answer.rationale is not None:
            kept["rationale"] = answer.rationale
        self._answered.put(key, kept)

    def _key(self, messages: list[Message], n: int | str) -> str:
        """The name under which the cache keeps the n-th answer."""
        config = self.config
        try:
            named = self._media.named(messages)
        except InputError as fault:
            raise self._no_file(fault) from None
        asked = {"url": config.base_url, "model": config.model, "messages": named, "vote": n}
        return digest({**asked, "extra": config.extra, "logprobs": config.logprobs})

    def _read(self, done: Completion, classes: Sequence[str]) -> tuple[str, Answer | None]:
        """The label of an answer with confidence and rationale, or why it has none."""
        known = [*classes, NOT_SURE] if self.config.not_sure else classes
        why = _unusable(done)
        label = None if why else read_label(done.text, known)
        if label is None:
            return why or ("no class" if done.text.strip() else "empty"), None
        sure = label_confidence(done.tokens, label, known) if done.tokens else None
        why_so = read_rationale(done.text) if self.config.rationale else None
        return "", Answer(label, sure, 0.0, why_so)

    async def _until(
        self, question: _Question, read: Callable[[Completion], tuple[str, T | None]]
    ) -> tuple[T, float]:
        """Ask until an answer can be read; also, what that cost."""
        spent, why = 0.0, ""
        for _ in range(1 + RE_ASKS):
            try:
                done = await self._complete(question)
            except JudgeFault as fault:
                fault.cost += spent
                raise
            spent += self.usage.pay(self.config.price, done.usage)
            why, found = read(done)
            if found is not None:
                return found, spent
            self.usage.faults[why] += 1
        raise NoLabel(self.id, f"no label, asked {1 + RE_ASKS} times: {why}", spent)

    async def _complete(self, question: _Question) -> Completion:
        """Send a question until there is an answer to it."""
        patience = Patience(self._limits, self.config.num_retries)
        while True:
            if self.stopped is not None:
                raise Stopped(self.id, self.stopped)
            got, features = await self._send(question)
            if isinstance(got, Completion):
                self._rejected = 0
                return got
            if isinstance(got, Halt):
                raise self._stop(got.why)
            if isinstance(got, Reject):
                self._reject(got, features)
            else:
                try:
                    await patience.after(got)
                except TooLong as end:
                    if end.final:
                        raise self._stop(str(end)) from None
                    raise Unavailable(self.id, str(end)) from None

    def _body(
        self, question: _Question, messages: list[Message], features: frozenset[str]
    ) -> dict[str, Any]:
        body: dict[str, Any] = {"model": self.config.model, "messages": messages}
        classes, config = question.classes, self.config
        if classes and "response_format" in features:
            body["response_format"] = schema(classes, config.rationale, config.not_sure)
        if classes and "logprobs" in features:
            body |= {"logprobs": True, "top_logprobs": min(20, max(5, len(classes)))}
        extra = {key: value for key, value in config.extra.items() if value is not None}
        if not classes:  # an answer of its own has no form
            extra.pop("response_format", None)
        return body | extra

    async def _send(
        self, question: _Question
    ) -> tuple[Completion | Retry | Reject | Halt, frozenset[str]]:
        """Send one request, when the limits allow it; also, with which features."""
        try:
            messages = await self._media.filled(question.messages)
        except (InputError, FetchError) as fault:
            raise self._no_file(fault) from None
        guess = guessed_tokens(messages) + 20
        async with self._limits.turn(guess):
            features = frozenset(self._features)
            if self.stopped is not None:
                return Halt(self.stopped), features
            self.usage.requests += 1
            try:
                body = self._body(question, messages, features)
                got = classify(*await self._http.post(body))
            except Lost as lost:
                self.usage.unpriced += lost.sent
                got = Retry("no response", str(lost))
            except Refused as refused:
                got = Halt(str(refused))
        if isinstance(got, Completion):
            read = token_count(got.usage, "prompt_tokens") or 0
            self._limits.used(guess, read + (token_count(got.usage, "completion_tokens") or 0))
            return got, features
        if isinstance(got, Retry):
            self.usage.faults[got.kind] += 1
            self.usage.unpriced += got.kind == "broken answer"
        return replace(got, why=self._http.scrub(got.why)), features

    def _no_file(self, why: Exception) -> NoLabel:
        """The item names a file that cannot be sent."""
        self.usage.faults["no file"] += 1
        return NoLabel(self.id, str(why))

    def _reject(self, got: Reject, features: frozenset[str]) -> None:
        """Drop the feature that the server does not know; else this item has no label."""
        why = got.why
        unknown = {f for f in features if any(word in why.lower() for word in _WORDS[f])}
        if unknown:
            for feature in unknown & self._features:
                LOG.warning("judge %s: asked without %s from now on", self.id, feature)
            self._features -= unknown
            return
        self.usage.faults["rejected"] += 1
        self._rejected += not got.item
        if self._rejected >= REJECTIONS:
            raise self._stop(f"{self._rejected} requests in a row were rejected: {why}")
        raise NoLabel(self.id, f"the request was rejected: {why}")

    def _stop(self, why: str) -> Stopped:
        """Ask nothing any more, and say so once."""
        if self.stopped is None:
            self.stopped = why
            LOG.warning("judge %s stops: %s", self.id, self.stopped)
        return Stopped(self.id, self.stopped)


def _unusable(done: Completion) -> str:
    """Why an answer counts for nothing, whatever it says."""
    if done.refusal or done.finish == "content_filter":
        return "refused"
    return "truncated" if done.finish in ("length", "error") else ""


def _own_text(done: Completion) -> tuple[str, str | None]:
    why = _unusable(done)
    return why or "empty", (done.text.strip() or None) if not why else None


def _severity(fault: BaseException) -> int:
    kinds = (Stopped, Unavailable, NoLabel)
    return next((n for n, kind in enumerate(kinds) if isinstance(fault, kind)), len(kinds))
