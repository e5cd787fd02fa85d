"""A scikit-learn estimator as a labeler, with `predict_proba` as a soft answer.

    forest = SklearnModel("forest", pipeline, fields="text")
    vn.label(items, [forest, ...], budget)

Estimators saved with skops hold no code; those saved with pickle or joblib are programs that run
when they are loaded, so that `load` wants to be told that they are trusted.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from venire.batch import Answer
from venire.connectors.models import Model, Said, answers_of, margins_of
from venire.errors import FileError, InputError
from venire.tools.lazy import library

PICKLES = (".joblib", ".pkl", ".pickle")


class SklearnModel(Model):
    """A fitted classifier or pipeline of scikit-learn, or any object with `predict`.

    The confidence is that of `predict_proba`; of a classifier without it, the distance from the
    border (`decision_function`), of which only the order counts; else there is none. An estimator
    that was fitted on a dataframe gets one, of the fields of the items that have its column names.

    Parameters
    ----------
    id
        The labeler.
    estimator
        What was fitted.
    fields
        The field of an item that it is shown, such as a text or a vector; or a list of fields that
        are numbers.
    classes
        Names for its classes, in their order; by default its own.
    batch, price
        How many items it gets at a time, and what a label costs.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> fitted = LogisticRegression().fit([[0.0], [1.0], [2.0], [3.0]], ["a", "a", "b", "b"])
    >>> model = SklearnModel("line", fitted, fields=["x"])
    >>> [(one.label, round(one.confidence, 2)) for one in model.answer([{"x": 0}, {"x": "3"}])]
    [('a', 0.81), ('b', 0.81)]
    """

    KEYS: ClassVar[tuple[str, ...]] = ("trust",)

    def __init__(
        self,
        id: str,
        estimator: Any,
        *,
        fields: str | Sequence[str] | None = None,
        classes: Sequence[Hashable] | None = None,
        batch: int = 64,
        price: float = 0.0,
    ) -> None:
        if not callable(getattr(estimator, "predict", None)):
            raise InputError(f"labeler {id!r} is {estimator!r}, expected an object with predict")
        super().__init__(id, self._said, fields=fields, batch=batch, price=price)
        self._estimator = estimator
        columns = getattr(estimator, "feature_names_in_", None)
        self._columns = None if fields is not None or columns is None else list(columns)
        own = getattr(estimator, "classes_", None)
        self._own = None if own is None else [_plain(name) for name in own]
        if classes is not None and self._own is not None and len(classes) != len(self._own):
            raise InputError(
                f"labeler {id!r} has {len(classes)} classes, expected {len(self._own)}: the names "
                f"of {self._own}"
            )
        self._names = list(classes) if classes is not None else self._own

    @classmethod
    def of_entry(cls, folder: Path, id: str, file: Any, **options: Any) -> Self:
        estimator = load(folder / file, options.pop("trust", False))
        return cls(id, estimator, **options)

    def _said(self, inputs: list[Any]) -> Said:
        seen = self._matrix(inputs)
        if hasattr(self._estimator, "predict_proba"):
            shares = np.asarray(self._estimator.predict_proba(seen), np.float64)
            return answers_of(shares, self._names)
        labels = [self._named(label) for label in self._estimator.predict(seen)]
        if hasattr(self._estimator, "decision_function"):
            sure = margins_of(self._estimator.decision_function(seen)).tolist()
            return [Answer(label, confidence=q) for label, q in zip(labels, sure, strict=True)]
        return [Answer(label) for label in labels]

    def _named(self, label: Any) -> Hashable:
        said: Hashable = _plain(label)
        if self._own is None or self._names is None:
            return said
        return self._names[self._own.index(said)]

    def _matrix(self, inputs: list[Any]) -> Any:
        """Texts and records as they are, vectors as one array, or a dataframe."""
        if self._columns is not None:
            frame = library("pandas", "sklearn").DataFrame(inputs)
            return frame.reindex(columns=self._columns)
        if isinstance(inputs[0], list | tuple | np.ndarray):
            return np.array(inputs, np.float64)
        return inputs


def load(path: str | Path, trust: bool | Sequence[str] = False) -> Any:
    """An estimator out of a .skops file, or, if it is trusted, a .joblib or .pkl file.

    `trust` may be a list of the types, beyond those of scikit-learn and NumPy, that a .skops file
    may hold. **A .joblib or .pkl file can do anything that you can do**: with `trust=True` it is
    run.
    """
    path = Path(path)
    if not path.is_file():
        raise FileError(path, None, "cannot be read (no such file): check the path")
    library("sklearn", "sklearn")
    if path.suffix == ".skops":
        return _skops(path, trust)
    if path.suffix not in PICKLES:
        raise FileError(path, None, f"expected a model saved as .skops, {' or '.join(PICKLES)}")
    if trust is not True:
        raise FileError(
            path,
            None,
            "is a program that runs when it is loaded: if you know where it comes from, say "
            "trust: true; better, save the model with skops.io.dump as .skops",
        )
    try:
        return library("joblib", "sklearn").load(path)
    except Exception as fault:
        raise FileError(path, None, f"cannot be loaded ({type(fault).__name__}: {fault})") from None


def _skops(path: Path, trust: bool | Sequence[str]) -> Any:
    skops = library("skops.io", "sklearn")
    try:
        unknown = skops.get_untrusted_types(file=path)
        trusted = unknown if trust is True else list(trust or ())
        more = sorted(set(unknown) - set(trusted))
        if not more:
            return skops.load(path, trusted=trusted)
    except Exception as fault:
        why = f"{type(fault).__name__}: {str(fault)[:300]}"
        raise FileError(path, None, f"cannot be loaded ({why})") from None
    raise FileError(
        path,
        None,
        f"holds types that are not known to be harmless: {', '.join(more)}. If you know them, "
        f"list them: trust: [{', '.join(more)}]",
    )


def _plain(label: Any) -> Any:
    return label.item() if isinstance(label, np.generic) else label
