"""`Judge`: a model behind an OpenAI-compatible API as a labeler.

A question is sent when the limits allow it. A 429 makes the whole judge wait for as long as the
server asks; other faults are retried up to `num_retries` times; an answer that is no label is asked
for again twice. What remains is a `JudgeFault`. A server that knows no `response_format` or no
log-probabilities is asked without them from then on.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Self

from venire.connectors.judges.answers import Answer, pooled
from venire.connectors.judges.cache import Cache, digest
from venire.connectors.judges.confidence import label_confidence
from venire.connectors.judges.config import JudgeConfig
from venire.connectors.judges.faults import JudgeFault, NoLabel, Stopped, Unavailable
from venire.connectors.judges.http import Connections, Lost, key_of
from venire.connectors.judges.pacing import Limits
from venire.connectors.judges.patience import Patience, TooLong
from venire.connectors.judges.prompt import Prompt, schema
from venire.connectors.judges.reading import read_label
from venire.connectors.judges.responses import Completion, Halt, Reject, Retry, classify
from venire.connectors.judges.usage import Usage, tokens
from venire.errors import InputError

__all__ = ["Judge"]

LOG = logging.getLogger("venire.judges")

#: How often an answer that is no label is asked for again.
RE_ASKS = 2

#: Seconds that the first question waits for an answer, and between its tries if nobody listens.
PROBE_SECONDS, PROBES = 10.0, (0.2, 0.5)

#: Tokens of an item and of an answer, as long as nothing is known.
GUESSED_INPUT, GUESSED_OUTPUT = 200, 10

#: A judge is stopped after so many rejections in a row for reasons that are not the item's.
REJECTIONS = 10

#: What a rejection says about a feature that the server does not know.
_WORDS = {
    "response_format": ("response_format", "response format", "json_schema", "json schema"),
    "logprobs": ("logprob",),
}


class Judge:
    """A model as a labeler; `async with` closes its connections.

    async with Judge(JudgeConfig.read({"id": "strict", "model": "gpt-x", ...})) as judge:
        answer = await judge.answer({"text": "Buy now!"})

    >>> Judge(JudgeConfig.read({"id": "strict", "model": "m", "prompt": "{{ text }}",
    ...                         "base_url": "http://127.0.0.1:8000/v1"})).id
    'strict'
    """

    def __init__(self, config: JudgeConfig, cache: Cache | None = None) -> None:
        """`cache` may be shared by several judges."""
        self.id, self.config, self.usage = config.id, config, Usage()
        self.family = config.family
        self._cache = Cache() if cache is None else cache
        self._prompt = Prompt(config.prompt, config.system)
        key = key_of(f"judge {config.id}", config.api_key_env)
        url = f"{config.base_url}/chat/completions"
        self._http = Connections(url, config.timeout, config.max_parallel, key)
        self._limits = Limits(config.max_parallel, config.rpm, config.tpm)
        given = {"logprobs"} if config.logprobs else set()
        self._features = given | ({"response_format"} - set(config.extra))
        self._rejected = 0
        self.stopped: str | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._http.close()

    @property
    def parallel(self) -> int:
        """How many questions it answers at once."""
        return self.config.max_parallel

    @property
    def price(self) -> float:
        """What a label costs: the mean so far; before that a guess by the length of its prompt."""
        usage, config = self.usage, self.config
        if usage.labels and usage.cost:
            return usage.cost / usage.labels
        read = len(config.prompt + config.system) // 4 + GUESSED_INPUT
        return config.votes * config.price.of(read, GUESSED_OUTPUT)

    async def answer(self, item: Any, classes: Sequence[str] | None = None) -> Answer:
        """Label an item; raises a `JudgeFault` if there is no label.

        `classes` are those of a stream; those of the configuration must be the same.
        """
        answer = await self.ask(item, classes)
        self.usage.labels += 1
        return answer

    async def ask(self, item: Any, classes: Sequence[str] | None = None) -> Answer:
        """As `answer`, for an answer that is only a part of a label, and is not counted as one."""
        known = self.classes(classes)
        messages = self._prompt.messages(item, known)
        votes = (self._vote(messages, tuple(known), n) for n in range(self.config.votes))
        said = await asyncio.gather(*votes, return_exceptions=True)
        return self._counted(said, tuple(known))

    async def probe(self, item: Any, classes: Sequence[str] | None = None) -> str:
        """Ask one question, without retries that take long, to see whether there are answers.

        Raises a `JudgeFault` if there is no way to one: nobody listens, or the key, the model or
        the address is refused. A judge that is busy or slow is not at fault: that is returned.
        """
        known = tuple(self.classes(classes))
        messages = self._prompt.messages(item, self.classes(classes))
        key = self._key(messages, 0)
        if self._cache.get(key) is not None:
            return ""
        for wait in (*PROBES, None):
            try:
                async with asyncio.timeout(PROBE_SECONDS):
                    got, features = await self._send(messages, known)
            except TimeoutError:
                return f"judge {self.id} did not answer within {PROBE_SECONDS:g} seconds"
            if isinstance(got, Retry) and got.kind == "no response" and wait is not None:
                await asyncio.sleep(wait)
                continue
            break
        if isinstance(got, Halt):
            raise self._stop(got.why)
        if isinstance(got, Retry):
            if got.kind == "no response":
                raise Unavailable(self.id, f"no response from {self.config.base_url}: {got.why}")
            return f"judge {self.id} is busy ({got.why})"
        if isinstance(got, Reject):
            with suppress(NoLabel):
                self._reject(got, features)
            return ""
        self.usage.pay(self.config.price, got.usage)
        _, label = _read(got, known)
        if label is not None:
            sure = label_confidence(got.tokens, label, known) if got.tokens else None
            self._cache.put(key, {"label": label, "confidence": sure})
        return ""

    def forecast(self, items: Sequence[Any]) -> tuple[int, int, int]:
        """How many questions all items are, how many of them the cache answers, and their tokens.

        Tokens are those of the questions that would be asked, four characters each.
        """
        known, asked, cached, read = self.classes(), 0, 0, 0
        for item in items:
            messages = self._prompt.messages(item, known)
            for n in range(self.config.votes):
                if self._cache.get(self._key(messages, n)) is not None:
                    cached += 1
                    continue
                asked += 1
                read += sum(len(one["content"]) for one in messages) // 4
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

    def _counted(self, said: Sequence[Answer | BaseException], classes: Sequence[str]) -> Answer:
        """The answer of all votes; more than half of them must be there."""
        votes = [one for one in said if isinstance(one, Answer)]
        faults = [one for one in said if isinstance(one, BaseException)]
        for fault in faults:
            if not isinstance(fault, JudgeFault):
                raise fault
        cost = sum(one.cost for one in said if isinstance(one, Answer | JudgeFault))
        if 2 * len(votes) <= len(said):
            worst = min(faults, key=_severity)
            assert isinstance(worst, JudgeFault)
            worst.cost = cost
            raise worst
        if self.config.votes == 1:
            return votes[0]
        shares = pooled(votes, classes)
        best = max(shares.values())
        label = next((one.label for one in votes if shares[one.label] == best), votes[0].label)
        return Answer(label, shares[label], cost)

    async def _vote(
        self, messages: list[dict[str, str]], classes: tuple[str, ...], n: int
    ) -> Answer:
        """One answer, out of the cache or of the model."""
        key = self._key(messages, n)
        held = self._cache.get(key)
        if held is not None and held.get("label") in classes:
            self.usage.cached += 1
            return Answer(held["label"], held.get("confidence"))
        answer = await self._ask(messages, classes)
        self._cache.put(key, {"label": answer.label, "confidence": answer.confidence})
        return answer

    def _key(self, messages: list[dict[str, str]], n: int) -> str:
        """The name under which the cache keeps the n-th answer."""
        config = self.config
        asked = {"url": config.base_url, "model": config.model, "messages": messages, "vote": n}
        return digest({**asked, "extra": config.extra, "logprobs": config.logprobs})

    async def _ask(self, messages: list[dict[str, str]], classes: tuple[str, ...]) -> Answer:
        """Ask until there is a label."""
        spent, why = 0.0, ""
        for _ in range(1 + RE_ASKS):
            try:
                done = await self._complete(messages, classes)
            except JudgeFault as fault:
                fault.cost += spent
                raise
            spent += self.usage.pay(self.config.price, done.usage)
            why, label = _read(done, classes)
            if label is not None:
                sure = label_confidence(done.tokens, label, classes) if done.tokens else None
                return Answer(label, sure, spent)
            self.usage.faults[why] += 1
        raise NoLabel(self.id, f"no label, asked {1 + RE_ASKS} times: {why}", spent)

    async def _complete(
        self, messages: list[dict[str, str]], classes: tuple[str, ...]
    ) -> Completion:
        """Send a question until there is an answer to it."""
        patience = Patience(self._limits, self.config.num_retries)
        while True:
            if self.stopped is not None:
                raise Stopped(self.id, self.stopped)
            got, features = await self._send(messages, classes)
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
        self, messages: list[dict[str, str]], classes: tuple[str, ...], features: frozenset[str]
    ) -> dict[str, Any]:
        body: dict[str, Any] = {"model": self.config.model, "messages": messages}
        if "response_format" in features:
            body["response_format"] = schema(classes)
        if "logprobs" in features:
            body |= {"logprobs": True, "top_logprobs": min(20, max(5, len(classes)))}
        return body | {key: value for key, value in self.config.extra.items() if value is not None}

    async def _send(
        self, messages: list[dict[str, str]], classes: tuple[str, ...]
    ) -> tuple[Completion | Retry | Reject | Halt, frozenset[str]]:
        """Send one request, when the limits allow it; also, with which features."""
        guess = sum(len(one["content"]) for one in messages) // 4 + 20
        async with self._limits.turn(guess):
            features = frozenset(self._features)
            if self.stopped is not None:
                return Halt(self.stopped), features
            self.usage.requests += 1
            try:
                got = classify(*await self._http.post(self._body(messages, classes, features)))
            except Lost as lost:
                self.usage.unpriced += lost.sent
                got = Retry("no response", str(lost))
        if isinstance(got, Completion):
            read = tokens(got.usage, "prompt_tokens") or 0
            self._limits.used(guess, read + (tokens(got.usage, "completion_tokens") or 0))
            return got, features
        if isinstance(got, Retry):
            self.usage.faults[got.kind] += 1
            self.usage.unpriced += got.kind == "broken answer"
        return replace(got, why=self._http.scrub(got.why)), features

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


def _read(done: Completion, classes: Sequence[str]) -> tuple[str, str | None]:
    """The label of an answer, or why it has none."""
    if done.refusal or done.finish == "content_filter":
        return "refused", None
    if done.finish in ("length", "error"):
        return "truncated", None
    label = read_label(done.text, classes)
    return ("" if label is not None else "no class" if done.text.strip() else "empty"), label


def _severity(fault: BaseException) -> int:
    kinds = (Stopped, Unavailable, NoLabel)
    return next((n for n, kind in enumerate(kinds) if isinstance(fault, kind)), len(kinds))
