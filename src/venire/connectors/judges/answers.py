"""What a judge answers: why it gave no label, how its text is read, and where answers are kept.

    JudgeFault
    ├── NoLabel        it answered, but not with a label: refused, truncated, no class
    │   └── NotSure    it said that it cannot tell
    ├── Unavailable    it cannot be reached for now, or is too busy: ask again later
    └── Stopped        no request can succeed any more: its key, its quota, its model

A worker hands an item after `NoLabel` to other labelers only; after `Unavailable` the same judge
may get it again; after `Stopped` the worker of that judge ends, and the rest of the panel goes on.

**What the text of an answer says: the label, why, and how sure; when in doubt, no label.**

Taken are a JSON object with `label`, also inside a code fence or among other text, and a text that
is the name of a class and nothing else. Several objects must agree. A name somewhere in a sentence
is not taken: "not spam" is not spam.

How sure a judge is comes from the log-probabilities of its tokens. The answer is
`{"label": "spam"}`, in tokens; each comes with the most probable alternatives. Walking over the
tokens of the value, the confidence is the product of

    P(tokens that continue the label) / P(tokens that continue any class),

the chain rule over the classes that are still possible. Tokens that all classes share say nothing,
and where one class is the beginning of another, the token that ends the value tells them apart.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from venire.errors import FileError, GaveUp, NotNow, VenireError
from venire.estimators.voices import edge
from venire.model import rationale_of
from venire.tools.http import Halt, Reject, Retry, fault_of
from venire.tools.untrusted import parse_json


@dataclass(frozen=True, slots=True)
class Answer:
    """A label, how sure the judge was, what this answer cost now, and why it said so.

    Confidence and rationale are None where the judge did not say them. An answer out of the cache
    costs nothing.

    >>> Answer("spam", 0.9, rationale="It sells watches.").rationale
    'It sells watches.'
    """

    label: str
    confidence: float | None = None
    cost: float = 0.0
    rationale: str | None = None


class JudgeFault(VenireError):
    """A judge gave no label; `cost` is what its tokens cost all the same.

    >>> str(NoLabel("strict", "it refused")), NoLabel("strict", "it refused", cost=0.5).cost
    ('judge strict: it refused', 0.5)
    """

    def __init__(self, judge: str, why: str, cost: float = 0.0) -> None:
        self.judge, self.why, self.cost = judge, why, cost
        super().__init__(f"judge {judge}: {why}")


class NoLabel(JudgeFault):
    """The judge answered, but not with one of the classes; another labeler should be asked."""


class NotSure(NoLabel):
    """The judge said that it cannot tell."""


class Unavailable(JudgeFault, NotNow):
    """The judge cannot answer for now; the same item may be asked again."""


class Stopped(JudgeFault, GaveUp):
    """The judge cannot answer any more: spent quota, wrong key, unknown model."""


def pooled(answers: Sequence[Answer], classes: Sequence[str]) -> Mapping[str, float]:
    """The mean of several answers as a share for each class.

    An answer gives its class its confidence (1 if it has none), and the others the rest in equal
    parts.

    >>> pooled([Answer("a"), Answer("b"), Answer("a", 0.8)], ["a", "b"])
    {'a': 0.6, 'b': 0.4}
    """
    shares = dict.fromkeys(classes, 0.0)
    for answer in answers:
        sure = 1.0 if answer.confidence is None else answer.confidence
        rest = (1.0 - sure) / max(1, len(classes) - 1)
        for name in shares:
            shares[name] += sure if name == answer.label else rest
    return {name: round(share / len(answers), 12) for name, share in shares.items()}


def voices(answers: Iterable[tuple[str, str, Answer]]) -> list[tuple[str, str, str]]:
    """Rows (item, labeler, label) for `LabelTable.from_rows`, of (item, judge, answer).

    A judge that says how sure it is becomes two labelers, `judge (sure)` and `judge (unsure)`,
    whose skills are learned (`venire.estimators.voices`). Judges without confidence, or with always
    the same, keep one voice.

    >>> rows = [("a", "j", Answer("spam", 0.9)), ("b", "j", Answer("ok", 0.6))]
    >>> voices([*rows, ("a", "k", Answer("ok"))])
    [('a', 'j (sure)', 'spam'), ('b', 'j (unsure)', 'ok'), ('a', 'k', 'ok')]
    """
    said = list(answers)
    known: dict[str, list[float]] = defaultdict(list)
    for _, judge, answer in said:
        if answer.confidence is not None:
            known[judge].append(answer.confidence)
    edges = {judge: edge(values) for judge, values in known.items()}
    return [
        (item, _voice(judge, answer, edges.get(judge)), answer.label)
        for item, judge, answer in said
    ]


def _voice(judge: str, answer: Answer, border: float | None) -> str:
    if border is None or answer.confidence is None:
        return judge
    return f"{judge} (sure)" if answer.confidence >= border else f"{judge} (unsure)"


MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Price:
    """The price of a million tokens, in the currency of your bill.

    >>> Price(input=3.0, output=15.0).of(1000, 100)
    0.0045
    """

    input: float = 0.0
    output: float = 0.0

    def of(self, read: int, written: int) -> float:
        return (read * self.input + written * self.output) / MILLION

    def less(self, discount: float) -> Price:
        """The price with a discount, a share.

        >>> Price(input=3.0, output=15.0).less(0.5)
        Price(input=1.5, output=7.5)
        """
        return Price(self.input * (1 - discount), self.output * (1 - discount))


@dataclass
class Usage:
    """Counts of one judge since it was opened.

    `unpriced` are requests that may have cost something, but the answer did not say what: time-outs
    and broken answers. Tokens of answers that were no labels count like any others. `unsure` are
    answers "not sure".
    """

    labels: int = 0
    unsure: int = 0
    cached: int = 0
    requests: int = 0
    unpriced: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0
    faults: Counter[str] = field(default_factory=Counter)

    def pay(self, price: Price, reported: Mapping[str, Any] | None) -> float:
        """Count the tokens that an answer reports; what they cost.

        >>> usage = Usage()
        >>> usage.pay(Price(10, 0), {"prompt_tokens": 100, "completion_tokens": 5}), usage.unpriced
        (0.001, 0)
        """
        read = token_count(reported, "prompt_tokens")
        written = token_count(reported, "completion_tokens")
        if read is None and written is None:
            self.unpriced += 1
        self.input_tokens += read or 0
        self.output_tokens += written or 0
        cost = price.of(read or 0, written or 0)
        self.cost += cost
        return cost

    def to_json(self) -> dict[str, Any]:
        return {**vars(self), "faults": dict(sorted(self.faults.items()))}

    def summary(self) -> str:
        """One line.

        >>> Usage(labels=3, requests=4, cost=0.5, faults=Counter(limited=1)).summary()
        '3 labels, 4 requests, 0 answers from the cache, 0 + 0 tokens, cost 0.5; limited: 1'
        """
        tail = ", ".join(f"{kind}: {n:,}" for kind, n in sorted(self.faults.items()))
        lost = f", {self.unpriced:,} requests of unknown cost" if self.unpriced else ""
        lost += f", {self.unsure:,} not sure" if self.unsure else ""
        return (
            f"{self.labels:,} labels, {self.requests:,} requests, "
            f"{self.cached:,} answers from the cache, "
            f"{self.input_tokens:,} + {self.output_tokens:,} tokens, cost {self.cost:.6g}{lost}"
            + (f"; {tail}" if tail else "")
        )


def token_count(reported: Any, name: str) -> int | None:
    """A number of tokens, if the answer has one."""
    value = reported.get(name) if isinstance(reported, Mapping) else None
    return value if isinstance(value, int) and value >= 0 else None


_THOUGHTS = re.compile(r"\A.*</think(?:ing)?>", re.S)
_FENCE = re.compile(r"\A```\w*\n?(.*?)\n?```\Z", re.S)
_DECODER = json.JSONDecoder()


def read_label(text: str, classes: Sequence[str]) -> str | None:
    r"""The class that a text names, if it names exactly one.

    >>> read_label('Sure!\n```json\n{"label": "spam"}\n```', ["spam", "ok"])
    'spam'
    >>> read_label("OK.", ["spam", "ok"]), read_label("not spam", ["spam", "ok"])
    ('ok', None)
    """
    text = _THOUGHTS.sub("", text).strip()
    said = {_as_text(found["label"]) for found in _objects(text) if "label" in found}
    if not said:
        fenced = _FENCE.match(text)
        said = {(fenced[1] if fenced else text).strip().strip("\"'`*.").strip()}
    return _class(said.pop(), classes) if len(said) == 1 else None


def read_rationale(text: str) -> str | None:
    """Why the judge says so: the `rationale` of the object that has the label.

    >>> read_rationale('{"rationale": " It sells watches. ", "label": "spam"}')
    'It sells watches.'
    """
    found = [one for one in _objects(_THOUGHTS.sub("", text)) if "label" in one]
    return rationale_of(found[-1].get("rationale")) if found else None


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _class(name: str, classes: Sequence[str]) -> str | None:
    """The class of this name; else the only one that differs in case or space alone."""
    if name in classes:
        return name
    near = [known for known in classes if known.strip().casefold() == name.strip().casefold()]
    return near[0] if len(near) == 1 else None


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """The JSON objects in a text, the outermost ones."""
    at = text.find("{")
    while at >= 0:
        try:
            found, end = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            end = at + 1
        else:
            yield found
        at = text.find("{", end)


def label_confidence(tokens: Any, label: str, classes: Sequence[str]) -> float | None:
    """The probability of the label among the classes; None if the tokens do not tell.

    >>> top = [{"token": "sp", "logprob": math.log(0.6)}, {"token": "ok", "logprob": math.log(0.2)}]
    >>> said = [{"token": "sp", "logprob": math.log(0.6), "top_logprobs": top},
    ...         {"token": "am", "logprob": 0.0, "top_logprobs": []}]
    >>> round(label_confidence(said, "spam", ["spam", "ok"]), 3)
    0.75
    """
    if not isinstance(tokens, list) or not all(_is_token(token) for token in tokens):
        return None
    text = "".join(token["token"] for token in tokens)
    start = _start(text, label)
    if start is None:
        return None
    sure = 1.0
    for before, token in _inside(tokens, start, start + len(label) + 1):  # and what ends it
        sure *= _share(before, token, label, classes)
    return sure


def _is_token(token: Any) -> bool:
    return isinstance(token, Mapping) and isinstance(token.get("token"), str)


def _start(text: str, label: str) -> int | None:
    """Where the value of `label` begins; without JSON, where the text names the class."""
    found = list(re.finditer(r'"label"\s*:\s*"?' + re.escape(label), text, re.I))
    if found:
        return found[-1].end() - len(label)
    at = text.casefold().find(label.casefold())
    return at if at >= 0 and text.strip().strip("\"'`*.").casefold() == label.casefold() else None


def _inside(
    tokens: list[Mapping[str, Any]], start: int, end: int
) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The tokens that overlap the value, and where in the value each begins (below 0: before)."""
    at = 0
    for token in tokens:
        if at < end and at + len(token["token"]) > start:
            yield at - start, token
        at += len(token["token"])


def _share(before: int, token: Mapping[str, Any], label: str, classes: Sequence[str]) -> float:
    """The share of the label in the mass of the alternatives that continue any class."""
    others = token.get("top_logprobs") or []
    mass = {one["token"]: one.get("logprob") for one in [*others, token] if _is_token(one)}
    lead, said = token["token"][: max(0, -before)], label[: max(0, before)]
    own = whole = 0.0
    for text, logprob in mass.items():
        if not isinstance(logprob, int | float) or not text.startswith(lead):
            continue
        p, after = math.exp(min(0.0, logprob)), said + text[len(lead) :]
        own += p * _continues(after, label)
        whole += p * any(_continues(after, name) for name in classes)
    return own / whole if whole > 0 else 1.0


def _continues(text: str, name: str) -> bool:
    """Whether a text may be the beginning of a class, or of the class and what follows it."""
    text, name = text.casefold(), name.casefold()
    return bool(text) and (
        name.startswith(text) or re.match(re.escape(name) + r"\W", text) is not None
    )


@dataclass(frozen=True)
class Completion:
    """An answer, which may still be a refusal or no label."""

    text: str
    finish: str
    refusal: bool
    tokens: Any
    usage: Mapping[str, Any] | None


def classify(
    status: int, headers: Mapping[str, str], body: bytes
) -> Completion | Retry | Reject | Halt:
    """What a response of a chat completions API means.

    >>> classify(429, {"retry-after": "2"}, b"{}")
    Retry(kind='limited', why='429', after=2.0, limited=True)
    >>> classify(429, {}, b'{"error": {"code": "insufficient_quota", "message": "no money"}}')
    Halt(why='429 insufficient_quota: no money')
    """
    fault, said = fault_of(status, headers, body)
    return _completion(said) if fault is None else fault


def _completion(said: Any) -> Completion | Retry:
    try:
        choice = said["choices"][0]
        message = choice["message"]
        text = _text(message.get("content"))
        refusal, finish = bool(message.get("refusal")), str(choice.get("finish_reason") or "")
        tokens = (choice.get("logprobs") or {}).get("content")
        usage = said.get("usage")
    except (KeyError, IndexError, TypeError, AttributeError):
        return Retry("broken answer", "the answer is not a chat completion")
    return Completion(text, finish, refusal, tokens, usage if isinstance(usage, dict) else None)


def _text(content: Any) -> str:
    """The text of a message: text, or a list of parts."""
    if isinstance(content, list):
        parts = (part.get("text") for part in content if isinstance(part, Mapping))
        return "".join(part for part in parts if isinstance(part, str))
    return content if isinstance(content, str) else ""


_HEX = 64


def digest(asked: Mapping[str, Any]) -> str:
    """The name under which the answer to a question is kept.

    >>> digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1}) != digest({"a": 1})
    True
    """
    text = json.dumps(asked, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class Cache:
    """Answers by the digest of what was asked, in a file or, without a path, in memory.

    The file is text, one answer a line: the SHA-256 of everything that was asked (model, address,
    messages, parameters, which vote), a space, and the answer as JSON. Lines are only ever
    appended, each with one write, so that a crash loses at most the line it was writing; what is
    not a whole line is skipped. Only labels are kept, never faults. Neither prompts nor keys are in
    it.

    >>> cache = Cache()
    >>> cache.put("0" * 64, {"label": "spam"})
    >>> cache.get("0" * 64), cache.get("1" * 64)
    ({'label': 'spam'}, None)
    """

    def __init__(self, path: str | Path | None = None, late: bool = False) -> None:
        """Read what is there; the file and its folder are made if they are not.

        `late` says that new answers are written by `save`: those of batches are kept elsewhere with
        what they cost until the run has ended.
        """
        self._late: list[bytes] | None = [] if late else None
        self._answers: dict[bytes, bytes] = {}
        self._file: int | None = None
        if path is not None:
            self._open(Path(path))

    def get(self, key: str) -> dict[str, Any] | None:
        """The answer, if it is known."""
        text = self._answers.get(bytes.fromhex(key))
        return None if text is None else json.loads(text)

    def put(self, key: str, answer: Mapping[str, Any]) -> None:
        """Keep an answer."""
        text = json.dumps(answer, separators=(",", ":")).encode()
        self._answers[bytes.fromhex(key)] = text
        line = b"%s %s\n" % (key.encode(), text)
        if self._late is not None:
            self._late.append(line)
        elif self._file is not None:
            os.write(self._file, line)

    def save(self) -> None:
        if self._late and self._file is not None:
            os.write(self._file, b"".join(self._late))
            self._late.clear()

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def __len__(self) -> int:
        return len(self._answers)

    def _open(self, path: Path) -> None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
            held = path.read_bytes()
        except OSError as error:
            why = (error.strerror or str(error)).lower()
            message = f"the cache cannot be opened ({why}): give another path with --cache"
            raise FileError(path, None, message) from None
        for line in held.splitlines():
            self._take(line)
        if held and not held.endswith(b"\n"):
            os.write(self._file, b"\n")  # a crash cut the last line short

    def _take(self, line: bytes) -> None:
        try:
            key = bytes.fromhex(line[:_HEX].decode())
            answer = parse_json(line[_HEX:])
        except ValueError:
            return
        if len(key) == _HEX // 2 and isinstance(answer, dict):
            self._answers[key] = line[_HEX + 1 :]
