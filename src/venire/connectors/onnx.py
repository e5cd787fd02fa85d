"""An ONNX file as a labeler, run by onnxruntime.

    net = OnnxModel("net", "net.onnx", fields="pixels", classes=["cat", "dog"])
    vn.label(items, [net, ...], budget)

A model has one input. Of its outputs the probabilities are used, and the labels if there are any:
as sklearn-onnx writes them (a tensor, or a map for each item), or logits of a network.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from venire.batch import Answer
from venire.connectors.models import KINDS, Model, Said, answers_of, shares_of
from venire.errors import FileError, InputError, UnknownName
from venire.tools.csv_rows import shown
from venire.tools.lazy import library

#: The types of inputs that items can be turned into.
TYPES: Final[dict[str, type[np.generic]]] = {
    f"tensor({name})": np.dtype(name).type for name in ("float16", "int64", "int32", "uint8")
} | {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(string)": np.str_}

#: Providers that send what a model is shown to addresses that the file names.
REMOTE: Final = frozenset({"AzureExecutionProvider"})


class OnnxModel(Model):
    """A model in an ONNX file.

    Parameters
    ----------
    id
        The labeler.
    path
        The .onnx file.
    fields
        The field of an item that is the input, such as a text or (nested) lists of numbers; or a
        list of fields that are numbers.
    classes
        The names of the classes, in the order of the scores; by default those of the file, or the
        numbers from 0.
    scores
        What the scores are: `probabilities` or `logits`.
    output
        The name of the output with the scores; by default the first with scores for each item.
    batch, price
        How many items it gets at a time (a file made for a fixed number gets that many), and what
        a label costs.
    """

    def __init__(
        self,
        id: str,
        path: str | Path,
        *,
        fields: str | Sequence[str] | None = None,
        classes: Sequence[Hashable] | None = None,
        scores: str = "probabilities",
        output: str | None = None,
        batch: int = 64,
        price: float = 0.0,
    ) -> None:
        """Open the file."""
        if scores not in KINDS:
            raise UnknownName("kind of scores", scores, KINDS)
        self._session = _opened(Path(path))
        inputs = self._session.get_inputs()
        if len(inputs) != 1 or inputs[0].type not in TYPES:
            got = ", ".join(f"{one.name}: {one.type}" for one in inputs)
            raise FileError(path, None, f"has the inputs {got}, expected one tensor")
        self._input = inputs[0]
        first = self._input.shape[0] if self._input.shape else None
        self._fixed = first if isinstance(first, int) else None
        super().__init__(id, self._said, fields=fields, batch=self._fixed or batch, price=price)
        self._classes, self._kind = None if classes is None else list(classes), scores
        self._scores, self._labels = _outputs(Path(path), self._session.get_outputs(), output)

    def _said(self, inputs: list[Any]) -> Said:
        shown, count = self._tensor(inputs), len(inputs)
        wanted = [name for name in (self._scores, self._labels) if name is not None]
        found = dict(zip(wanted, self._session.run(wanted, {self._input.name: shown}), strict=True))
        labels = None if self._labels is None else _texts(found[self._labels])[:count]
        if self._scores is None:
            assert labels is not None
            return [Answer(self._named(label)) for label in labels]
        given, names = _table(found[self._scores])
        shares = shares_of(given[:count], self._kind)
        if self._classes is not None or names is not None or labels is None:
            return answers_of(shares, self._classes if self._classes is not None else names)
        said = answers_of(shares)  # columns without names: the labels have them
        return [
            Answer(label, confidence=one.confidence) if isinstance(one, Answer) else one
            for label, one in zip(labels, said, strict=True)
        ]

    def _named(self, label: int | str) -> Hashable:
        if self._classes is None or isinstance(label, str):
            return label
        if not 0 <= label < len(self._classes):
            raise InputError(f"said class {label}, expected 0 to {len(self._classes) - 1}")
        return self._classes[label]

    def _tensor(self, inputs: list[Any]) -> Any:
        """The inputs in the type and shape of the model; a fixed number of items is filled up."""
        filled = inputs + inputs[-1:] * ((self._fixed or 0) - len(inputs))
        kind = TYPES[self._input.type]
        try:
            shown = np.array(filled, kind)
            shape = [n if isinstance(n, int) and n > 0 else -1 for n in self._input.shape[1:]]
            if shown.ndim != len(self._input.shape) or shape.count(-1) == 0:
                shown = shown.reshape(len(filled), *shape)
        except ValueError as fault:
            raise ValueError(
                f"the input {self._input.name} is {self._input.type} of shape "
                f"{self._input.shape}, which the item is not: {fault}"
            ) from None
        return shown.astype(object) if kind is np.str_ else shown


def _opened(path: Path) -> Any:
    runtime = library("onnxruntime", "onnx")
    if not path.is_file():
        raise FileError(path, None, "cannot be read (no such file): check the path")
    here = [name for name in runtime.get_available_providers() if name not in REMOTE]
    try:
        return runtime.InferenceSession(str(path), providers=here)
    except Exception as fault:
        why = shown(str(fault), 300)
        raise FileError(path, None, f"is not an ONNX model that can be run: {why}") from None


def _outputs(
    path: Path, outputs: Sequence[Any], chosen: str | None
) -> tuple[str | None, str | None]:
    """The names of the outputs with scores and with labels."""
    kinds = {one.name: str(one.type) for one in outputs}
    if chosen is not None and chosen not in kinds:
        raise FileError(path, None, f"has no output {chosen!r}: it has {', '.join(kinds)}")
    scores = [name for name, kind in kinds.items() if "float" in kind or "double" in kind]
    labels = [name for name, kind in kinds.items() if kind in ("tensor(int64)", "tensor(string)")]
    if chosen is not None:
        scores = [chosen] if chosen in scores else []
        labels = [chosen] if chosen in labels else labels
    if not scores and not labels:
        raise FileError(path, None, f"has the outputs {kinds}, expected scores or labels")
    return next(iter(scores), None), next(iter(labels), None)


def _table(scores: Any) -> tuple[Any, list[Hashable] | None]:
    """Scores as rows, and the names of the columns if they have names."""
    if isinstance(scores, list) and scores and isinstance(scores[0], Mapping):
        names = list(scores[0])
        return np.array([[row[name] for name in names] for row in scores]), names
    return np.asarray(scores), None


def _texts(labels: Any) -> list[Any]:
    found: list[Any] = np.asarray(labels).reshape(len(labels), -1)[:, 0].tolist()
    return found
