"""Models that a student learns with: the default one, and any of scikit-learn's.

A model is taught posteriors, not classes: an item that is "spam" with 0.8 counts as spam with that
weight and as "ok" with the rest. Models of scikit-learn that take no weights are taught the most
probable class. The default is logistic regression on the posteriors q,

    minimise  C * sum over items of -q log softmax(W x + b)  +  |W|^2 / 2,

by L-BFGS. How far it is held back (C) is chosen by the log-loss on items that it was not taught.

**What a student sees of an item: hashed words and characters of a text, or a vector.**

A text becomes counts of its words and pairs of words, and of the runs of three characters inside
words, each hashed to one of 2**13 places and scaled to length one. Nothing is learned for that, so
the features of an item never change, and no word is kept. A list of numbers, nested or not, such as
pixels or an embedding, is taken as it is, up to 4,096 numbers.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from venire.errors import InputError
from venire.tools.arrays import Floats, softmax
from venire.tools.lazy import library

#: A matrix with a row for each item, dense or sparse.
Rows: TypeAlias = Any
#: Contents to rows, for features of your own.
Features: TypeAlias = Callable[[Sequence[Any]], Rows]

#: Places that words, and runs of characters, are hashed to.
PLACES: Final = 2**13

#: Numbers in a vector, at most: a picture of 64 by 64. Longer ones are not used.
LONGEST: Final = 2**12

#: Fields of a record that say nothing of its content.
RESERVED: Final = frozenset({"id", "weight", "target", "eligible", "excluded"})


class Seen(NamedTuple):
    """What is seen of items: a row for each, which of them can be used, and of what kind they are.

    Rows that cannot be used are zero.
    """

    rows: Rows
    usable: NDArray[np.bool_]
    kind: str


def rows_of(
    contents: Sequence[Any],
    features: Features | None = None,
    field: str | None = None,
    like: tuple[str, int] | None = None,
) -> Seen:
    """What is seen of the contents.

    Of a record `field` is taken, or all of its text. Without `features`, items are seen as texts if
    at least half of them are, else as vectors of the most frequent length; with `like`, a kind and
    a number of features, as that.

    >>> rows_of(["Buy now!", "hello", None]).usable.tolist()
    [True, True, False]
    >>> rows_of([{"pixels": [0.5, 1]}, {"pixels": [0, 0.25]}], field="pixels").rows.tolist()
    [[0.5, 1.0], [0.0, 0.25]]
    """
    if features is not None:
        return _own(contents, features)
    values = [_value(content, field) for content in contents]
    texts = np.array([isinstance(value, str) for value in values], np.bool_)
    is_text = texts.any() and texts.sum() * 2 >= len(values) if like is None else like[0] == "text"
    if is_text:
        told = [value if isinstance(value, str) else "" for value in values]
        return Seen(_hashed(told), texts, "text")
    vectors = [_vector(value) for value in values]
    sizes = [len(v) for v in vectors if v is not None]
    if not sizes and like is None:
        where = f"the field {field!r}" if field else "their content"
        raise InputError(
            f"the items have no features: expected a text or a list of numbers in {where}, got "
            f"{contents[0] if len(contents) else None!r}"
        )
    size = max(set(sizes), key=sizes.count) if like is None else like[1]
    usable = np.array([v is not None and len(v) == size for v in vectors], np.bool_)
    rows = np.zeros((len(vectors), size))
    for i in np.flatnonzero(usable):
        rows[i] = vectors[i]
    return Seen(rows, usable, "vector")


def _own(contents: Sequence[Any], features: Features) -> Seen:
    rows = features(contents)
    if getattr(rows, "shape", (0,))[0] != len(contents) or len(rows.shape) != 2:
        raise InputError(
            f"the features of {len(contents)} items have the shape "
            f"{getattr(rows, 'shape', None)}, expected a row for each"
        )
    return Seen(rows, np.ones(len(contents), np.bool_), "own")


def _value(content: Any, field: str | None) -> Any:
    if not isinstance(content, Mapping):
        return content
    if field is not None:
        return content.get(field)
    told = [v for k, v in content.items() if isinstance(v, str) and k not in RESERVED]
    if told:
        return "\n".join(told)
    lists = [v for k, v in content.items() if _vector(v) is not None and k not in RESERVED]
    return lists[0] if len(lists) == 1 else None


def _vector(value: Any) -> NDArray[np.float64] | None:
    """A list of finite numbers, flattened; None for anything else, and for one that is too long."""
    if not isinstance(value, list | tuple | np.ndarray) or len(value) > LONGEST:
        return None
    try:
        flat = np.asarray(value, np.float64).ravel()
    except (TypeError, ValueError, OverflowError):
        return None
    return flat if 0 < flat.size <= LONGEST and np.isfinite(flat).all() else None


def _hashed(texts: Sequence[str]) -> Rows:
    from scipy.sparse import hstack

    return hstack([hashing.transform(texts) for hashing in _hashings()], format="csr")


@cache
def _hashings() -> tuple[Any, ...]:
    text = library("sklearn.feature_extraction.text", "student")
    words = text.HashingVectorizer(n_features=PLACES, ngram_range=(1, 2))
    characters = text.HashingVectorizer(n_features=PLACES, analyzer="char_wb", ngram_range=(3, 3))
    return words, characters


#: What logistic regression is held back by; the first is the strongest.
STRENGTHS: Final = (0.03, 0.3, 3.0)

#: Classes that are less probable than this are not taught to models of scikit-learn.
UNLIKELY: Final = 0.02

#: Steps of logistic regression: it need not converge to be right.
STEPS: Final = 25


class Model(Protocol):
    """What was learned: how probable each class is."""

    def shares(self, rows: Rows) -> Floats:
        """Items x classes."""


@dataclass(frozen=True, eq=False)
class Linear:
    """Logistic regression as arrays, which can be kept without running anything when read.

    >>> model = Linear(np.array([[0.0], [2.0]]), np.zeros(2), np.zeros(1), np.ones(1))
    >>> model.shares(np.array([[0.0], [1.0]])).round(2).tolist()
    [[0.5, 0.5], [0.12, 0.88]]
    """

    weights: Floats  # classes x features
    bias: Floats
    mean: Floats  # of dense features; empty for sparse ones
    scale: Floats

    def shares(self, rows: Rows) -> Floats:
        """Items x classes."""
        seen = rows if self.mean.size == 0 else (rows - self.mean) / self.scale
        return softmax(np.asarray(seen @ self.weights.T) + self.bias)

    def arrays(self) -> dict[str, Floats]:
        return dict(vars(self))


@dataclass(frozen=True, eq=False)
class _Own:
    """A model of the user's."""

    fitted: Any
    classes: int

    def shares(self, rows: Rows) -> Floats:
        """Items x classes; a model without `predict_proba` is always sure."""
        known = np.asarray(self.fitted.classes_, np.int64)
        found = np.zeros((rows.shape[0], self.classes))
        if hasattr(self.fitted, "predict_proba"):
            found[:, known] = self.fitted.predict_proba(rows)
        else:
            found[np.arange(len(found)), np.asarray(self.fitted.predict(rows), np.int64)] = 1.0
        return found


def fit_model(rows: Rows, posterior: Floats, model: Any = None, strength: float = 0.3) -> Model:
    """Teach a model, the default one or a clone of the one given, these posteriors.

    >>> rows = np.array([[0.0], [0.1], [0.9], [1.0]])
    >>> q = np.array([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.1, 0.9]])
    >>> fit_model(rows, q).shares(rows).argmax(axis=1).tolist()
    [0, 0, 1, 1]
    """
    if model is not None:
        return _fit_own(rows, posterior, model)
    dense = isinstance(rows, np.ndarray)
    mean = rows.mean(axis=0) if dense else np.empty(0)
    spread = rows.std(axis=0) if dense else np.empty(0)
    scale = np.where(spread > 1e-12, spread, 1.0)
    # hashed rows have length one, and dense ones about the root of their number
    held = 30.0 * strength / rows.shape[1] if dense else 10.0 * strength
    if dense:
        return Linear(*logistic((rows - mean) / scale, posterior, held), mean, scale)
    used = np.unique(rows.indices)  # the weights of all other places are 0
    weights = np.zeros((posterior.shape[1], rows.shape[1]))
    weights[:, used], bias = logistic(rows[:, used], posterior, held)
    return Linear(weights, bias, mean, scale)


def logistic(rows: Rows, posterior: Floats, C: float, steps: int = STEPS) -> tuple[Floats, Floats]:
    """Weights, classes x features, and bias of logistic regression on posteriors.

    >>> weights, bias = logistic(np.array([[-1.0], [1.0]]), np.array([[0.9, 0.1], [0.1, 0.9]]), 100)
    >>> shown = np.exp(weights @ [1.0] + bias)
    >>> (shown / shown.sum()).round(1).tolist()
    [0.1, 0.9]
    """
    from scipy.optimize import minimize

    K, d = posterior.shape[1], rows.shape[1]
    flat = rows.T.tocsr() if hasattr(rows, "tocsr") else rows.T

    def loss(at: Floats) -> tuple[float, Floats]:
        weights, bias = at[K:].reshape(K, d), at[:K]
        scores = np.asarray(rows @ weights.T) + bias
        scores -= scores.max(axis=1, keepdims=True)
        total = np.log(np.exp(scores).sum(axis=1, keepdims=True))
        missed = np.exp(scores - total) - posterior
        value = -C * float((posterior * (scores - total)).sum()) + float(at[K:] @ at[K:]) / 2
        slope = C * np.asarray(flat @ missed).T + weights
        return value, np.concatenate([C * missed.sum(axis=0), slope.ravel()])

    shares = posterior.mean(axis=0) + 1e-6
    start = np.concatenate([np.log(shares), np.zeros(K * d)])
    found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": steps}).x
    return found[K:].reshape(K, d), found[:K]


def _fit_own(rows: Rows, posterior: Floats, model: Any) -> Model:
    if not (hasattr(model, "fit") and hasattr(model, "predict")):
        raise InputError(
            f"got the model {model!r}, expected one of scikit-learn: with fit and predict"
        )
    fresh = library("sklearn.base", "student").clone(model)
    validation = library("sklearn.utils.validation", "student")
    weighted = validation.has_fit_parameter(fresh, "sample_weight")
    if weighted:
        item, said = np.nonzero(posterior > UNLIKELY)
        options: Mapping[str, Any] = {"sample_weight": posterior[item, said]}
    else:
        item, said, options = np.arange(len(posterior)), posterior.argmax(axis=1), {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it did not converge is meant
        fresh.fit(rows[item], said, **options)
    return _Own(fresh, posterior.shape[1])
