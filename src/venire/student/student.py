"""A student: a model that learns from the verdicts and joins the panel.

It is taught what the others say (`lessons`), and asked about every item, since it costs nothing and
is never busy. What it says has a confidence, of which bins are made: each is a labeler of its own,
from `student (1 of 5)`, the least sure one, to `student (5 of 5)`, whose skill and confusion matrix
are learned like anybody's. What "sure" means is thus learned, not believed.

How good it is is measured on items that it was not taught: the items are divided into folds, and
each is answered by a model that was taught the others. It says nothing until what it says of these
agrees with the panel significantly more often than the most frequent class does: a student that
cannot learn stays silent.

**What a student learned as bytes, and back: arrays and a few numbers, nothing that runs.**

Weights are kept in single precision, those of unused places not at all. Only the default model can
be kept; a model of your own is for the library.

**What a student is taught: what the *other* labelers say, without its own votes.**

Were its votes among them, it would be its own teacher: what it says becomes more probable because
it said so, it is taught that, says it again, and looks right. So its labels are taken out before
anything is learned: the skills of the others, how often each class comes, and the posteriors

    q_k  ~  share_k * product over the others' labels of P(label | class k)

are those of a panel on which it never sat. Items that nobody else has labelled teach nothing.
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Hashable, Mapping, Sequence, Set
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from venire.errors import InputError
from venire.estimators.auto import Auto
from venire.estimators.dependence import weighted_posteriors
from venire.labels import LabelTable
from venire.labels.table import keep_labels
from venire.model import Labeler
from venire.student.models import STRENGTHS, Features, Linear, Model, Rows, Seen, fit_model, rows_of
from venire.tools.arrays import Bools, Floats, Ints

if TYPE_CHECKING:
    from venire.engine import Scheduler
    from venire.student.seat import Seat, StudentInBatch


class Lessons(NamedTuple):
    """The posterior of each item without the student's votes, and of which items there is one."""

    posterior: NDArray[np.float64]
    known: NDArray[np.bool_]


def lessons(
    table: LabelTable,
    own: Set[Hashable] = frozenset(),
    gold: Mapping[Hashable, Hashable] | None = None,
) -> Lessons:
    """What the labels say without those of the labelers `own`; gold is what it is.

    >>> rows = [("a", "ann", "yes"), ("a", "bob", "yes"), ("b", "ann", "no"), ("b", "bob", "no"),
    ...         ("c", "ann", "yes"), ("c", "student", "no"), ("d", "student", "no")]
    >>> taught = lessons(LabelTable.from_rows(rows), {"student"})
    >>> taught.known.tolist(), bool(taught.posterior[2, 1] > 0.5)
    ([True, True, True, False], True)
    """
    mine = np.array([name in own for name in table.labelers], np.bool_)
    others = keep_labels(table, ~mine[table.labeler])
    known = np.diff(others.start) > 0
    if not known.any():
        return Lessons(np.zeros((len(table.items), len(table.classes))), known)
    told = dict(gold or {})
    fitted = Auto().fit(others, told or None)
    q = weighted_posteriors(others, fitted.rows_, fitted.shares_, [])
    if told:
        code = {name: k for k, name in enumerate(table.classes)}
        for i, item in enumerate(table.items):
            if item in told and told[item] in code:
                q[i], known[i] = np.eye(len(code))[code[told[item]]], True
    return Lessons(q, known)


#: Fewer items than this teach nothing.
FEWEST: Final = 30

#: Standard errors by which it must agree with the panel more often than the commonest class does.
SIGNIFICANT: Final = 3.0

#: More items than this, the last ones, are not taught.
MOST: Final = 10_000


@dataclass(frozen=True, eq=False)
class Taught:
    """What a student learned: a model, its confidence on items it was not taught, its record.

    Attributes
    ----------
    version : int
        1 for the first, one more for each later one.
    items : int
        How many items it was taught.
    agreement : float
        How often it agrees with the panel's verdict on items that it was not taught.
    commonest : float
        How often the most frequent class does.
    edges : array
        From which confidence on an answer belongs to the next bin.
    skills : array
        How often it agrees in each bin.
    held_out : array, items x classes
        What it says of each item that it was taught, by a model that was not taught that item.
    kind : str
        What it sees: "text", "vector", or "own" features.
    """

    version: int
    model: Model
    items: int
    agreement: float
    commonest: float
    edges: Floats
    skills: Floats
    held_out: Floats
    kind: str = "own"

    @property
    def ready(self) -> bool:
        """Whether it has learned anything: only then it joins the panel."""
        error = math.sqrt(self.commonest * (1.0 - self.commonest) / max(self.items, 1))
        return self.agreement > self.commonest + SIGNIFICANT * error

    def answers(self, shares: Floats) -> tuple[Ints, Ints]:
        """The bin and the class of each answer, from how probable each class is."""
        bins = np.searchsorted(self.edges, shares.max(axis=1), side="right")
        return bins.astype(np.int64), shares.argmax(axis=1).astype(np.int64)

    def record(self) -> dict[str, Any]:
        """Its record, for JSON."""
        return {
            "version": self.version,
            "verdicts": self.items,
            "agreement": self.agreement,
            "commonest": self.commonest,
            "ready": self.ready,
        }


#: The record of a student that has learned nothing.
UNTAUGHT: Final = MappingProxyType[str, Any](
    {"version": 0, "verdicts": 0, "agreement": None, "commonest": None, "ready": False}
)


@dataclass(frozen=True, eq=False)
class Student:
    """A model that learns from the verdicts and joins the panel.

    Parameters
    ----------
    model
        A classifier of scikit-learn; logistic regression by default. It is cloned, never changed.
    features
        A function from a list of contents to a matrix. By default words and characters of text,
        hashed; pixels and other vectors as they are.
    field
        Where in a record the text or vector is; by default all of its text.
    bins
        How many bins its confidence has, about as many answers in each.
    id
        Its name on the panel.
    folds
        Into how many parts the items are divided to measure it.
    seed
        Of that division.

    Examples
    --------
    >>> import venire as vn
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(300, 5))
    >>> items = {f"item-{i}": row.tolist() for i, row in enumerate(x)}
    >>> def ask(skill):
    ...     said = np.where(rng.random(300) < skill, x[:, 0] > 0, x[:, 0] <= 0).tolist()
    ...     return lambda content: said[list(items.values()).index(content)]
    >>> panel = {"ann": ask(0.8), "bob": ask(0.75), "cid": ask(0.7)}
    >>> truth = {name: bool(row[0] > 0) for name, row in zip(items, x)}
    >>> done = [vn.label(items, panel, vn.Budget(labels=450), truth=truth, student=s)
    ...         for s in (None, Student())]
    >>> done[1].accuracy > done[0].accuracy + 0.1, done[1].student["version"] > 0
    (True, True)
    """

    model: Any = None
    features: Features | None = None
    field: str | None = None
    bins: int = 5
    id: str = "student"
    folds: int = 4
    seed: int = 0

    def __post_init__(self) -> None:
        if isinstance(self.bins, bool) or self.bins not in range(1, 11):
            raise InputError(f"got bins={self.bins!r}, expected a whole number from 1 to 10")
        if isinstance(self.folds, bool) or self.folds not in range(2, 51):
            raise InputError(f"got folds={self.folds!r}, expected a whole number from 2 to 50")
        if not isinstance(self.id, str) or not self.id.strip():
            raise InputError(f"got id={self.id!r}, expected a name")

    @property
    def voices(self) -> tuple[str, ...]:
        """The labelers that it is, the least sure one first.

        >>> Student(bins=2).voices, Student(bins=1).voices
        (('student (1 of 2)', 'student (2 of 2)'), ('student',))
        """
        if self.bins == 1:
            return (self.id,)
        return tuple(f"{self.id} ({b + 1} of {self.bins})" for b in range(self.bins))

    def look(self, contents: Sequence[Any], taught: Taught | None = None) -> Seen:
        """What it sees of the contents, as it saw them when it was `taught`."""
        like = None
        if taught is not None and isinstance(taught.model, Linear):
            like = taught.kind, taught.model.weights.shape[1]
        return rows_of(contents, self.features, self.field, like)

    def learn(self, seen: Seen, lessons: Lessons, version: int = 1) -> Taught | None:
        """Learn from the lessons that are known; None if they are too few, or of one class.

        >>> rng = np.random.default_rng(0)
        >>> truth = rng.integers(2, size=200)
        >>> q = np.where(truth[:, None] == [0, 1], 0.9, 0.1)
        >>> seen = Student().look(list(truth[:, None] + rng.normal(size=(200, 3))))
        >>> taught = Student().learn(seen, Lessons(q, np.ones(200, bool)))
        >>> taught.ready, taught.items
        (True, 200)
        """
        places = np.flatnonzero(lessons.known & seen.usable)[-MOST:]
        rows, q = seen.rows[places], lessons.posterior[places]
        said = q.argmax(axis=1)
        if len(places) < FEWEST or len(set(said.tolist())) < 2:
            return None
        fold = np.random.default_rng(self.seed).permutation(len(places)) % self.folds
        strength = self._strength(rows, q, fold)
        found = np.zeros_like(q)
        for k in range(self.folds):
            found[fold == k] = self._fit(rows, q, fold != k, strength).shares(rows[fold == k])
        held_out = np.zeros_like(lessons.posterior)
        held_out[places] = found
        edges = np.quantile(found.max(axis=1), np.arange(1, self.bins) / self.bins)
        agrees = found.argmax(axis=1) == said
        bins = np.searchsorted(edges, found.max(axis=1), side="right")
        size = np.bincount(bins, minlength=self.bins)
        skills = (np.bincount(bins, agrees, minlength=self.bins) + 1.0) / (size + 2.0)
        return Taught(
            version,
            self._fit(rows, q, fold >= 0, strength),
            len(places),
            float(agrees.mean()),
            float(np.bincount(said).max() / len(said)),
            edges,
            skills,
            held_out,
            seen.kind,
        )

    def _strength(self, rows: Rows, q: Floats, fold: Ints) -> float:
        """How far the default model is held back, by the log-loss on the first fold."""
        if self.model is not None:
            return 0.0
        here = fold == 0

        def loss(strength: float) -> float:
            shares = self._fit(rows, q, ~here, strength).shares(rows[here])
            return -float((q[here] * np.log(np.maximum(shares, 1e-9))).sum())

        return min(STRENGTHS, key=loss)

    def _fit(self, rows: Rows, q: Floats, some: Bools, strength: float) -> Model:
        return fit_model(rows[np.flatnonzero(some)], q[some], self.model, strength)

    def take_seats(self, engine: Scheduler, taught: Taught, fresh: bool = True) -> None:
        """Put its voices on the panel, with their skills, `fresh` from a lesson or known before.

        They are away there, so that nobody waits for them: they label without being asked. Each
        joins by itself: what a learning knows of one that is on the panel already is kept.
        """
        known = {who.id for who in engine.panel}
        for voice, skill in zip(self.voices, taught.skills.tolist(), strict=True):
            if voice not in known or (fresh and engine.learning is None):
                engine.join(Labeler(voice, skill))
                engine.leave(voice)

    def join(self, scheduler: Scheduler, contents: Mapping[str, Any]) -> Seat:
        """A seat on the panel of a scheduler; `contents` are those of its items, by id."""
        from venire.student.seat import Seat

        return Seat(self, scheduler, contents)

    def join_batch(self, contents: Sequence[Any]) -> StudentInBatch:
        """A seat on the panel of a batch of these contents."""
        from venire.student.seat import StudentInBatch

        return StudentInBatch(self, contents)


def with_voices(
    table: LabelTable, student: Student, places: Ints, bins: Ints, said: Ints
) -> LabelTable:
    """The table with what the student says of some of its items.

    >>> table = LabelTable.from_matrix([[0, 1], [1, 1]])
    >>> both = with_voices(table, Student(bins=2), np.array([1]), np.array([0]), np.array([0]))
    >>> both.start.tolist(), both.labelers[-2:]
    ([0, 2, 5], ('student (1 of 2)', 'student (2 of 2)'))
    """
    first = len(table.labelers)
    return LabelTable.from_codes(
        np.concatenate([table.item, places]),
        np.concatenate([table.labeler, first + bins]).astype(np.int64),
        np.concatenate([table.said, said]).astype(np.int64),
        table.items,
        (*table.labelers, *student.voices),
        table.classes,
    )


FORMAT: Final = 1


def pack(taught: Taught) -> bytes:
    """What was learned, without what it says of the items it was taught.

    >>> model = Linear(np.array([[0.0, 0.0], [2.0, 0.0]]), np.zeros(2), np.empty(0), np.empty(0))
    >>> bins = np.array([0.7]), np.array([0.8, 0.9])
    >>> again = unpack(pack(Taught(3, model, 200, 0.9, 0.5, *bins, np.empty((0, 2)))))
    >>> again.version, again.ready, again.model.weights.tolist()
    (3, True, [[0.0, 0.0], [2.0, 0.0]])
    """
    model = taught.model
    if not isinstance(model, Linear):
        raise InputError(f"got the model {model!r}, expected the default one: others are not kept")
    used = np.flatnonzero(model.weights.any(axis=0))
    head = {
        "format": FORMAT,
        "version": taught.version,
        "items": taught.items,
        "agreement": taught.agreement,
        "commonest": taught.commonest,
        "kind": taught.kind,
        "features": model.weights.shape[1],
    }
    file = io.BytesIO()
    np.savez_compressed(
        file,
        head=np.frombuffer(json.dumps(head).encode(), np.uint8),
        used=used,
        weights=model.weights[:, used].astype(np.float32),
        bias=model.bias,
        mean=model.mean,
        scale=model.scale,
        edges=taught.edges,
        skills=taught.skills,
    )
    return file.getvalue()


def unpack(body: bytes) -> Taught:
    """What `pack` kept."""
    try:
        with np.load(io.BytesIO(body), allow_pickle=False) as kept:
            arrays: dict[str, Any] = {name: kept[name] for name in kept.files}
        head = json.loads(arrays["head"].tobytes())
        weights = np.zeros((len(arrays["bias"]), head["features"]))
        weights[:, arrays["used"]] = arrays["weights"]
    except Exception as error:
        raise InputError(f"this is not a student that this version can read: {error}") from None
    model = Linear(weights, *(np.asarray(arrays[n], np.float64) for n in ("bias", "mean", "scale")))
    nothing = np.empty((0, len(weights)))
    how = head["agreement"], head["commonest"], arrays["edges"], arrays["skills"], nothing
    return Taught(head["version"], model, head["items"], *how, head["kind"])
