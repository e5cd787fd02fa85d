"""A model behind an HTTP endpoint as a labeler: a JSON template, and paths into the answer.

    service = HttpModel(
        "service", "https://models.example.org/predict",
        request={"instances": "{{ items | map(attribute='text') | list }}"},
        answers="predictions", label="class", confidence="score", batch=32,
    )
    vn.label(items, [service, ...], budget)

Faults are those of judges, and so is what becomes of them: limits are kept on our side, a 429 makes
the whole labeler wait, what may pass is asked again, and what will not pass stops the labeler.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from venire.batch import Answer, NoAnswer
from venire.connectors.models import (
    Said,
    Template,
    answers_of,
    at_path,
    check_path,
    shares_of,
)
from venire.errors import GaveUp, InputError, NotNow
from venire.files.trees import check_number, check_text, check_url, check_whole
from venire.model import rationale_of
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
    fault_of,
    key_of,
)

LOG = logging.getLogger("venire.models")

#: A labeler is stopped after this number of failed requests if none ever succeeded.
REJECTIONS = 10


@dataclass(frozen=True)
class Calling:
    """How an endpoint is called.

    `api_key_env` names the variable of the environment that holds the key, which is sent as a
    bearer token, or as the header `api_key_header`. `rpm` is the most requests a minute,
    `max_parallel` the most at once, `num_retries` how often one is repeated after a fault of the
    server, `timeout` the seconds for one.

    >>> Calling(rpm=600).max_parallel
    4
    """

    api_key_env: str | None = None
    api_key_header: str = ""
    rpm: float | None = None
    max_parallel: int = 4
    num_retries: int = 4
    timeout: float = 60.0

    def __post_init__(self) -> None:
        if self.rpm is not None:
            check_number(("rpm",), self.rpm)
        if self.api_key_env is not None:
            check_text(("api_key_env",), self.api_key_env)
        check_number(("timeout",), self.timeout)
        check_whole(1)(("max_parallel",), self.max_parallel)
        check_whole(0)(("num_retries",), self.num_retries)


class Endpoint(Closing):
    """A labeler behind HTTP: `ask` makes the request of some items, `read` answers of the JSON."""

    KEYS: ClassVar[tuple[str, ...]] = tuple(field.name for field in fields(Calling))

    def __init__(
        self,
        id: str,
        url: str,
        ask: Callable[[Sequence[Any]], Any],
        read: Callable[[Any], Said],
        classes: Sequence[str] | None = None,
        *,
        batch: int = 1,
        price: float = 0.0,
        calling: Calling | None = None,
    ) -> None:
        """`read` raises `LookupError` or `ValueError` where the JSON is not what it should be."""
        how = Calling() if calling is None else calling
        self.id, self.price = id, price
        self.many, self.parallel = check_whole(1)(("batch",), batch), how.max_parallel
        self.stopped: str | None = None
        self._ask, self._read, self._retries = ask, read, how.num_retries
        self._classes = None if classes is None else list(classes)
        self._limits = Limits(how.max_parallel, how.rpm)
        key = key_of(f"labeler {id}", how.api_key_env)
        to = check_url(("http",), url)
        self._http = Connections(to, how.timeout, how.max_parallel, key, how.api_key_header)
        self._rejected: int | None = 0

    @classmethod
    def of_entry(cls, folder: Path, id: str, url: str, **options: Any) -> Self:
        """The endpoint that an entry of a panel file names; files are relative to its folder."""
        how = {key: options.pop(key) for key in cls.KEYS if key in options}
        made: Callable[..., Self] = cls
        return made(id, url, calling=Calling(**how), **options)

    async def close(self) -> None:
        await self._http.close()

    async def answer(self, items: Sequence[Any]) -> Said:
        """What the model says of each item: an `Answer`, or a `NoAnswer`.

        Raises `NotNow` if it cannot be reached for now, `GaveUp` if no request can succeed any
        more. A request that is refused for more than one item is made for each of them alone.
        """
        try:
            return await self._answers(items)
        except NoAnswer as none:
            if len(items) == 1:
                return [none]
        return [one for item in items for one in await self.answer([item])]

    async def _answers(self, items: Sequence[Any]) -> Said:
        body, patience = self._ask(items), Patience(self._limits, self._retries)
        while True:
            got = await self._send(body, len(items))
            if isinstance(got, list):
                self._rejected = None
                return got
            why = self._http.scrub(got.why)
            if isinstance(got, Halt):
                raise self._stop(why)
            if isinstance(got, Reject):
                if not got.item:
                    self._refuse(why)
                raise NoAnswer(f"labeler {self.id}: the request was rejected: {why}")
            try:
                await patience.after(got)
            except TooLong as end:
                if end.final:
                    raise self._stop(self._http.scrub(str(end))) from None
                if got.kind == "broken answer":
                    self._refuse(why)
                raise NotNow(f"labeler {self.id}: {self._http.scrub(str(end))}") from None

    async def _send(self, body: Any, count: int) -> Said | Retry | Reject | Halt:
        async with self._limits.turn(0):
            if self.stopped is not None:
                return Halt(self.stopped)
            try:
                status, headers, content = await self._http.post(body)
            except Lost as lost:
                return Retry("no response", str(lost))
        fault, said = fault_of(status, headers, content)
        if fault is not None:
            return fault
        try:
            answers = self._read(said)
        except (LookupError, ValueError) as broken:
            if isinstance(broken, InputError):
                raise InputError(f"labeler {self.id}: {broken}") from None
            return Retry("broken answer", f"{broken}: {str(said)[:120]}")
        if len(answers) != count:
            return Retry("broken answer", f"{len(answers)} answers to {count} items")
        return answers

    def _answer(self, label: Any, sure: Any, why: str | None) -> Answer | NoAnswer:
        """A label, which must be one of the classes, and a confidence, if it is a number."""
        if not isinstance(label, str | int) or (self._classes and label not in self._classes):
            return NoAnswer(f"labeler {self.id}: {str(label)[:80]!r} is not a class")
        number = isinstance(sure, int | float) and not isinstance(sure, bool)
        return Answer(label, confidence=sure if number else None, rationale=why)

    def _refuse(self, why: str) -> None:
        """Stop if no request ever does: then it is not the items that are at fault."""
        if self._rejected is not None:
            self._rejected += 1
            if self._rejected >= REJECTIONS:
                raise self._stop(f"none of {self._rejected} requests was answered: {why}")

    def _stop(self, why: str) -> GaveUp:
        """Ask nothing any more, and say so once."""
        if self.stopped is None:
            self.stopped = why
            LOG.warning("labeler %s stops: %s", self.id, why)
        return GaveUp(f"labeler {self.id}: {self.stopped}")


class HttpModel(Endpoint):
    """A model behind any JSON API.

    Parameters
    ----------
    id, url
        The labeler, and the address that is posted to.
    request
        The JSON that is sent: see `venire.connectors.models`.
    label, confidence, rationale
        Paths to the label and, if there are any, to the confidence in it and the reason for it.
    probabilities
        Instead: the path to the probabilities of all classes, a mapping from their names, or a list
        in the order of `classes`.
    answers
        The path to the list of answers, one for each item; the other paths are then inside of an
        answer. Needed for a `batch` of more than one.
    classes
        Names of the classes, for probabilities in a list and for labels that are numbers.
    batch, price, calling
        How many items a request has, what a label costs, and how the endpoint is called.

    Examples
    --------
    >>> model = HttpModel("m", "http://127.0.0.1:9/predict", request={"text": "{{ item.text }}"},
    ...                   label="result.label", confidence="result.score")
    >>> model.read({"result": {"label": "spam", "score": 0.9}})
    [Answer(label='spam', cost=None, confidence=0.9, rationale=None)]
    """

    def __init__(
        self,
        id: str,
        url: str,
        *,
        request: Any,
        label: str | None = None,
        confidence: str | None = None,
        probabilities: str | None = None,
        answers: str | None = None,
        classes: Sequence[str] | None = None,
        rationale: str | None = None,
        batch: int = 1,
        price: float = 0.0,
        calling: Calling | None = None,
    ) -> None:
        if (label is None) == (probabilities is None):
            raise InputError(
                f"labeler {id!r} needs either label or probabilities: a path in the answer"
            )
        if batch > 1 and answers is None:
            raise InputError(
                f"labeler {id!r} has a batch of {batch}: it needs answers, the path to the list"
            )
        paths = (label, confidence, rationale, probabilities, answers)
        self._label, self._sure, self._why, self._shares, self._answers_at = (
            None if path is None else check_path(path) for path in paths
        )
        super().__init__(
            id,
            url,
            Template(request).fill,
            self.read,
            classes,
            batch=batch,
            price=price,
            calling=calling,
        )

    @classmethod
    def of_entry(cls, folder: Path, id: str, url: str, **options: Any) -> Self:
        if "request" not in options:
            example = '{text: "{{ item.text }}"}'
            raise InputError(f"{id} needs request: the JSON to send, such as {example}")
        return super().of_entry(folder, id, url, **options)

    def read(self, said: Any) -> Said:
        """The answers in the JSON; raises `LookupError` or `ValueError` if they are not there."""
        each = [said] if self._answers_at is None else at_path(said, self._answers_at)
        if not isinstance(each, list):
            raise ValueError("the answers are not a list")
        return [self._one(one) for one in each]

    def _one(self, said: Any) -> Answer | NoAnswer:
        why = None if self._why is None else rationale_of(at_path(said, self._why))
        if self._shares is not None:
            answer = self._of_shares(at_path(said, self._shares))
            return answer if isinstance(answer, NoAnswer) else answer._replace(rationale=why)
        assert self._label is not None
        label = at_path(said, self._label)
        if label is None or label == "":
            return NoAnswer(f"labeler {self.id}: it gave no label")
        if isinstance(label, int) and self._classes is not None:
            if isinstance(label, bool) or not 0 <= label < len(self._classes):
                return NoAnswer(f"labeler {self.id}: {label} is not the number of a class")
            label = self._classes[label]
        sure = None if self._sure is None else at_path(said, self._sure)
        return self._answer(label, sure, why)

    def _of_shares(self, shares: Any) -> Answer | NoAnswer:
        names: Sequence[Any] | None = self._classes
        if isinstance(shares, Mapping):
            names, shares = list(shares), list(shares.values())
        if not isinstance(shares, list) or not shares:
            raise ValueError("the probabilities are neither a list nor a mapping")
        if any(isinstance(x, bool) or not isinstance(x, int | float | None) for x in shares):
            raise ValueError("the probabilities are not numbers")
        row = np.array([np.nan if x is None else x for x in shares], np.float64)
        return answers_of(shares_of(row[None, :]), names)[0]
