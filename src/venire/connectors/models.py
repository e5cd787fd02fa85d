r"""Models that people have already, as labelers: functions of many inputs, asked in batches.

The models themselves: `venire.connectors.sklearn`, `.onnx`, `.http`, `.label_studio_ml`. In a panel
file, for `venire label --panel` and `venire work --panel`:

    labelers:
      - {id: forest, sklearn: forest.skops, fields: text, batch: 64}
      - {id: net, onnx: net.onnx, fields: pixels, classes: [cat, dog], scores: logits}
      - id: service
        http: https://models.example.org/predict
        request: {instances: "{{ items | map(attribute='text') | list }}"}
        answers: predictions
        probabilities: scores
        classes: [cat, dog]
        batch: 32
      - {id: backend, label_studio_ml: "http://127.0.0.1:9090", classes: [cat, dog]}
      - {id: rules, call: "mine:rules"}          # a function, as ever

Paths of files are relative to the panel file. Another kind of model is a class in a file of its
own, whose options are the keys of an entry, and a line of `MODELS`.

A fault is never a label. An item that has not what the model needs, or for which it gives no
number, has no answer; where a batch as a whole fails, its items are asked one by one, and those
that fail alone have none. If all of them fail it is the model that is at fault: that is an error.

**A JSON template of a request, and a path into the answer.**

A template is JSON, or YAML, whose texts may hold expressions of jinja2, in its sandbox. A text that
is one expression, `"{{ item.text }}"`, becomes its value, whatever its type; in any other text the
values are filled in. Items are put into the parsed template, so that nothing in an item can change
the structure of the request.

A path is keys and numbers: `predictions[0].label`; `.` is the answer as it is.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Final, Self

import numpy as np

from venire.batch import Answer, NoAnswer
from venire.batch.labelers import Caller, as_callers
from venire.batch.labelling import read_batch_panel
from venire.errors import InputError, UnknownName, VenireError
from venire.tools.arrays import Floats, softmax
from venire.tools.lazy import library

#: What the numbers of a model may be.
KINDS: Final = ("probabilities", "logits")

#: How far the sum of the probabilities of an item may be from 1.
LOOSE: Final = 0.01


def shares_of(scores: Any, kind: str = "probabilities") -> Floats:
    """A row of probabilities for each item; one column is the probability of the second class.

    >>> shares_of([[0.0, 0.0], [2.0, 0.0]], "logits").round(2).tolist()
    [[0.5, 0.5], [0.88, 0.12]]
    >>> shares_of([0.25, 0.75]).tolist()
    [[0.75, 0.25], [0.25, 0.75]]
    """
    if kind not in KINDS:
        raise UnknownName("kind of scores", kind, KINDS)
    rows = np.asarray(scores, np.float64)
    rows = rows.reshape(len(rows), -1)
    if kind == "logits":
        if rows.shape[1] == 1:
            rows = np.hstack([np.zeros_like(rows), rows])
        with np.errstate(all="ignore"):  # a row that is not finite is not an answer
            return softmax(rows)
    return np.hstack([1.0 - rows, rows]) if rows.shape[1] == 1 else rows


def answers_of(
    shares: Floats, classes: Sequence[Hashable] | None = None
) -> list[Answer | NoAnswer]:
    """The most probable class of each row and its probability; a row of NaN is not an answer.

    Without `classes` a label is the number of its column.

    >>> found = answers_of(np.array([[0.9, 0.1], [np.nan, np.nan]]), ["ham", "spam"])
    >>> found[0], str(found[1])
    (Answer(label='ham', cost=None, confidence=0.9, rationale=None), 'the model gave no number')
    """
    names = range(shares.shape[1]) if classes is None else classes
    if shares.ndim != 2 or shares.shape[1] != len(names):
        raise InputError(
            f"the model gives {shares.shape[-1]} scores for an item, and there are {len(names)} "
            "classes: list as many classes, in the order of the scores"
        )
    whole = np.asarray(np.isfinite(shares).all(axis=1))
    _check(shares[whole])
    best = np.argmax(np.nan_to_num(shares, nan=-1.0), axis=1).tolist()
    return [
        Answer(names[k], confidence=float(row[k])) if good else NoAnswer("the model gave no number")
        for k, row, good in zip(best, shares, whole, strict=True)
    ]


def _check(shares: Floats) -> None:
    off = (shares < -LOOSE) | (shares > 1 + LOOSE) | (abs(shares.sum(1) - 1) > LOOSE)[:, None]
    if off.any():
        row = shares[np.flatnonzero(off.any(axis=1))[0]]
        raise InputError(
            f"the scores {[round(float(x), 4) for x in row[:8]]} are not probabilities: if they "
            "are logits, say scores: logits"
        )


def margins_of(decisions: Any) -> Floats:
    """How sure the decisions of a classifier without probabilities are: only the order counts.

    The logistic function of the distance from the border, or of the best class from the next.

    >>> margins_of([-2.0, 0.0]).round(2).tolist(), margins_of([[0.0, 3.0, 1.0]]).round(2).tolist()
    ([0.88, 0.5], [0.88])
    """
    scores = np.asarray(decisions, np.float64)
    scores = scores[:, 0] if scores.ndim == 2 and scores.shape[1] == 1 else scores
    if scores.ndim == 1:
        gap = np.abs(scores)
    else:
        top = np.sort(scores, axis=1)
        gap = top[:, -1] - top[:, -2]
    return np.asarray(1.0 / (1.0 + np.exp(-gap)))


#: After this number of items without the field, and none with it, the name of the field is wrong.
NEVER: Final = 10


class Inputs:
    """The field or fields of an item that a model sees; None for the item as it is.

    >>> Inputs("text").of({"id": "a", "text": "Buy now!"})
    'Buy now!'
    >>> Inputs(["height", "width"]).of({"height": 2, "width": "3.5"})
    [2.0, 3.5]
    """

    def __init__(self, fields: str | Sequence[str] | None = None) -> None:
        """One name, or a list of names of numbers."""
        names = [fields] if isinstance(fields, str) else fields or []
        if not all(isinstance(name, str) and name for name in names):
            raise InputError(f"got input {fields!r}, expected a field of the items, or a list")
        self.fields = fields
        self._missing: int | None = 0

    def of(self, item: Any) -> Any:
        """What the model is shown; raises `NoAnswer` for an item without it."""
        if self.fields is None:
            return item
        if isinstance(self.fields, str):
            return self._field(item, self.fields)
        return [self._number(item, name) for name in self.fields]

    def _field(self, item: Any, name: str) -> Any:
        found = item.get(name) if isinstance(item, Mapping) else None
        if found is not None and found != "":
            self._missing = None
            return found
        if self._missing is not None:
            self._missing += 1
            if self._missing >= NEVER:
                has = sorted(map(str, item)) if isinstance(item, Mapping) else repr(item)[:80]
                raise InputError(
                    f"none of {self._missing} items has the field {name!r}: they have {has}"
                )
        raise NoAnswer(f"the item has no {name}")

    def _number(self, item: Any, name: str) -> float:
        found = self._field(item, name)
        try:
            return float(found)
        except (TypeError, ValueError):
            raise NoAnswer(f"{name} is {str(found)[:80]!r}, expected a number") from None


#: Seconds that a call waits for others to come along.
WAIT: Final = 0.02


class Batching:
    """A function of a list, called with what was asked for within a moment.

    >>> async def both():
    ...     total = Batching(lambda numbers: [sum(numbers)] * len(numbers), most=64)
    ...     return await asyncio.gather(total(1), total(2))
    >>> asyncio.run(both())
    [3, 3]
    """

    def __init__(self, call: Callable[[list[Any]], Any], most: int, parallel: int = 1) -> None:
        self._call, self._most = call, most
        self._room = asyncio.Semaphore(parallel)
        self._waiting: list[tuple[Any, asyncio.Future[Any]]] = []
        self._running: set[asyncio.Task[None]] = set()

    async def __call__(self, item: Any) -> Any:
        """The answer to one item; the exception, if the call of its batch failed."""
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, future))
        task = asyncio.ensure_future(self._flush(len(self._waiting) >= self._most))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return await future

    async def _flush(self, full: bool) -> None:
        """Call with what waits: at once if there is enough, else after a moment."""
        if not full:
            await asyncio.sleep(WAIT)
        async with self._room:
            some, self._waiting = self._waiting[: self._most], self._waiting[self._most :]
            some = [(item, future) for item, future in some if not future.cancelled()]
            if some:
                await self._answer([item for item, _ in some], [future for _, future in some])

    async def _answer(self, items: list[Any], futures: list[asyncio.Future[Any]]) -> None:
        try:
            said = await self._said(items)
            if len(said) != len(items):
                raise InputError(f"got {len(said)} answers to {len(items)} items")
        except Exception as fault:
            said = [fault] * len(items)
        for future, one in zip(futures, said, strict=True):
            if future.done():
                continue
            if isinstance(one, Exception):
                future.set_exception(one)
            else:
                future.set_result(one)

    async def _said(self, items: list[Any]) -> list[Any]:
        if inspect.iscoroutinefunction(self._call):
            return list(await self._call(items))
        return list(await asyncio.to_thread(self._call, items))


_ONE = re.compile(r"\s*\{\{((?:(?!\}\}).)*)\}\}\s*", re.S)
_PART = re.compile(r"\.?([^.\[\]]+)|\[(-?\d+)\]")


class Lost(LookupError):
    """There is nothing at a path."""


class Template:
    """A request with items to be filled in: `items`, and `item`, the first of them.

    >>> ask = Template({"inputs": "{{ items | map(attribute='text') | list }}", "kind": "x"})
    >>> ask.fill([{"text": "Buy!"}, {"text": '"see" you'}])
    {'inputs': ['Buy!', '"see" you'], 'kind': 'x'}
    """

    def __init__(self, content: Any) -> None:
        """Compile every text of it."""
        sandbox, self._jinja2 = library("jinja2.sandbox", "judges"), library("jinja2", "judges")
        strict = self._jinja2.StrictUndefined
        self._env = sandbox.ImmutableSandboxedEnvironment(undefined=strict)
        self._content = self._compiled(content)

    def fill(self, items: Sequence[Any]) -> Any:
        """The request; raises `NoAnswer` where the items have not what it needs."""
        known = {"items": list(items), "item": items[0]}
        try:
            filled = self._filled(self._content, known)
            json.dumps(filled, default=self._refuse)
            return filled
        except Exception as fault:  # whatever an expression does with an item
            raise NoAnswer(f"the request cannot be filled in: {fault}") from None

    def _compiled(self, content: Any) -> Any:
        if isinstance(content, Mapping):
            return {str(key): self._compiled(value) for key, value in content.items()}
        if isinstance(content, list | tuple):
            return [self._compiled(value) for value in content]
        if not isinstance(content, str) or "{" not in content:
            return content
        one = _ONE.fullmatch(content)
        try:
            if one is None:
                return self._env.from_string(content).render
            return self._env.compile_expression(one[1], undefined_to_none=False)
        except self._jinja2.TemplateSyntaxError as error:
            message = f"{content!r} of the request is not a jinja2 template: {error.message}"
            raise InputError(message) from None

    def _filled(self, content: Any, known: Mapping[str, Any]) -> Any:
        if isinstance(content, dict):
            return {key: self._filled(value, known) for key, value in content.items()}
        if isinstance(content, list):
            return [self._filled(value, known) for value in content]
        return content(**known) if callable(content) else content

    def _refuse(self, value: Any) -> None:
        if isinstance(value, self._jinja2.Undefined):
            str(value)  # says what is not defined
        raise TypeError(f"{value!r} is not JSON")


def check_path(path: str) -> str:
    """Refuse what is not a path.

    >>> check_path("outputs[0]..label")
    Traceback (most recent call last):
    venire.errors.InputError: got the path 'outputs[0]..label', expected keys and numbers, ...
    """
    if not isinstance(path, str) or "".join(m[0] for m in _PART.finditer(path)) not in (
        path,
        path.removeprefix("."),
    ):
        raise InputError(
            f"got the path {path!r}, expected keys and numbers, such as predictions[0].label"
        )
    return path


def at_path(content: Any, path: str) -> Any:
    """What is at a path; raises `Lost` if nothing is.

    >>> at_path({"outputs": [{"label": "spam"}]}, "outputs[0].label"), at_path([1, 2], "[-1]")
    ('spam', 2)
    """
    for found in _PART.finditer(path):
        key, number = found[1], found[2]
        if number is not None and isinstance(content, list):
            if not -len(content) <= int(number) < len(content):
                raise Lost(f"there is no {path} in the answer")
            content = content[int(number)]
        elif key is not None and isinstance(content, Mapping) and key in content:
            content = content[key]
        else:
            raise Lost(f"there is no {path} in the answer")
    return content


LOG = logging.getLogger("venire.models")

Said = list[Answer | NoAnswer]


class Model:
    """A function that answers a list of inputs, as a labeler for `vn.label` and `venire work`.

    `fields` says what of an item it is shown, `batch` how many items it likes at a time, `price`
    what a label costs.

    >>> def shout(texts):
    ...     return [Answer("loud" if text.isupper() else "quiet", confidence=0.9) for text in texts]
    >>> model = Model("shout", shout, fields="text", batch=64)
    >>> [one.label for one in model.answer([{"text": "BUY"}, {"text": "see you"}])]
    ['loud', 'quiet']
    """

    #: Keys of an entry of a panel file, beside the options of the class.
    KEYS: ClassVar[tuple[str, ...]] = ()

    def __init__(
        self,
        id: str,
        predict: Callable[[list[Any]], Said],
        *,
        fields: str | Sequence[str] | None = None,
        batch: int = 64,
        price: float = 0.0,
    ) -> None:
        """`predict` is only called by one thread at a time."""
        if not isinstance(batch, int) or isinstance(batch, bool) or batch < 1:
            raise InputError(f"labeler {id!r} has batch {batch!r}, expected 1 or more")
        self.id, self.price, self.many, self.parallel = id, price, batch, 1
        self.stopped: str | None = None
        self._inputs, self._predict = Inputs(fields), predict

    @classmethod
    def of_entry(cls, folder: Path, id: str, file: Any, **options: Any) -> Self:
        """The model that an entry of a panel file in this folder names."""
        return cls(id, folder / file, **options)

    def answer(self, items: Sequence[Any]) -> Said:
        """What the model says of each item: an `Answer`, or a `NoAnswer`."""
        found: list[Answer | NoAnswer | None] = [None] * len(items)
        shown: dict[int, Any] = {}
        for n, item in enumerate(items):
            try:
                shown[n] = self._inputs.of(item)
            except NoAnswer as none:
                found[n] = none
        if shown:
            for n, one in zip(shown, self._ask(list(shown.values())), strict=True):
                found[n] = one
        return [one for one in found if one is not None]

    def _ask(self, inputs: list[Any]) -> Said:
        try:
            return self._checked(inputs)
        except VenireError as fault:
            raise InputError(f"labeler {self.id}: {fault}") from fault
        except Exception as fault:
            if len(inputs) == 1:
                raise
            alone = [self._alone(one) for one in inputs]
            if not any(isinstance(one, Answer) for one in alone):
                raise
            LOG.info("labeler %s: a batch failed (%s): asked one by one", self.id, fault)
            return alone

    def _alone(self, one: Any) -> Answer | NoAnswer:
        try:
            return self._checked([one])[0]
        except Exception as fault:
            return NoAnswer(f"labeler {self.id}: {type(fault).__name__}: {fault}")

    def _checked(self, inputs: list[Any]) -> Said:
        said = self._predict(inputs)
        if len(said) != len(inputs):
            raise InputError(f"gave {len(said)} answers to {len(inputs)} items")
        return said


#: The class of each kind of model, in the module of its name.
MODELS: Final = {
    "sklearn": "SklearnModel",
    "onnx": "OnnxModel",
    "http": "HttpModel",
    "label_studio_ml": "LabelStudioBackend",
}


def read_panel_of_models(
    path: str | Path, find: Callable[[str], Callable[[Any], Any]]
) -> tuple[Caller, ...]:
    """The labelers of a panel file: functions, columns and models.

    `find` turns `module:function` into a function.
    """
    folder = Path(path).resolve().parent
    return read_batch_panel(path, find, {kind: partial(model_of, folder, kind) for kind in MODELS})


def model_of(folder: Path, kind: str, entry: Mapping[str, Any]) -> Caller:
    """The model of one entry of a panel file.

    >>> entry = {"id": "b", "label_studio_ml": "http://127.0.0.1:9090", "classes": ["x", "y"]}
    >>> model_of(Path("."), "label_studio_ml", entry).many
    16
    """
    made = getattr(import_module(f"venire.connectors.{kind}"), MODELS[kind])
    own = {"id", kind, "family"}
    options = {key: value for key, value in entry.items() if key not in own}
    taken = inspect.signature(made).parameters.values()
    known = {one.name for one in taken if one.kind is one.KEYWORD_ONLY} - {"calling"}
    known |= own.union(made.KEYS)
    unknown = next((str(key) for key in options if key not in known), None)
    if unknown is not None:
        raise UnknownName(f"key of {kind} labeler {entry['id']}", unknown, known)
    if "classes" in options:
        options["classes"] = _names(entry["id"], options["classes"])
    model = made.of_entry(folder, str(entry["id"]), str(entry[kind]), **options)
    (caller,) = as_callers([model])
    return replace(caller, family=entry.get("family"))


def _names(labeler: Any, classes: Any) -> list[str]:
    """Names of classes; YAML reads an unquoted yes or no as a truth value."""
    odd = not isinstance(classes, list) or any(isinstance(one, bool | None) for one in classes)
    if odd or len(set(map(str, classes))) < max(2, len(classes)):
        raise InputError(
            f"{labeler} has the classes {classes!r}, expected a list of two or more names: put "
            'names such as "yes" and "no" in quotes'
        )
    return list(map(str, classes))
