"""The estimate of learning while serving: a batch fit of the labels that are remembered.

The belief about a panel is what the estimator says of the labels in the window, from a cold start,
so that no belief can reinforce itself. A stream differs from a table in two things. It forgets:
labels of items older than the window, labels older than a labeler's half-life, those of a labeler
that has changed, and all from before the panel changed. And it remembers what explained the labels
when labelers were last seen to err independently (`Shown`):

- The latest labels are compared with it: if they do not fit, the panel has changed.
- Whoever was then found to share errors is a family in the next fit too. How far they share them is
  measured anew.
- If errors pass for independent at one time and fall short of it by chance at the next, the belief
  stays until there are twice as many labels: no panel is weighed by EM and by the vote in turns.

**Which classes stand out**, so that an expected cost of them can be believed. Where an error is
twenty times as dear, a class of which an item has 5 % decides its verdict. So costs ask more of
probabilities than the most probable class does: that 5 % are not 20. They are wrong in three ways,
all of which concern a rare class: before anything is learned, when classes are taken to be equally
frequent; where labels tell nobody apart, for the same reason; and while the few items of a class
are outnumbered by doubtful items of others, which fill its share and its rows of the confusion
matrices. The last can be seen: with q_sk the probability that item s is of class k, the items of
the class itself are about

    n_k = sum_s q_sk^2,    and the mean probability of an item of the class is    n_k / sum_s q_sk.

A class is distinct if n_k is at least FEWEST and the mean at least PURE, both chosen on worlds of
moderation (docs/costs.md); the class of items with gold is known. It stays distinct down to lower
limits, so that verdicts are not revised back and forth. Between other classes verdicts are those
without costs.
"""

from __future__ import annotations

import copy
import inspect
import json
import warnings
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from venire.estimators.auto import Auto, Basis
from venire.estimators.base import BaseEstimator
from venire.estimators.clones import STRENGTH, CloneGroup
from venire.estimators.dependence import certainty, merge_clones
from venire.estimators.gold import certainty_by_gold, without_own_gold
from venire.estimators.screening import SHOWN_EXCESS
from venire.estimators.streaming.drift import DriftMonitor
from venire.estimators.streaming.state import (
    ITEM,
    LABELER,
    SAID,
    changed_since,
    latest,
    latest_shares,
    old_labels,
    opinions,
    watch,
)
from venire.estimators.voices import N_TONES
from venire.labels import LabelTable
from venire.paper.accuracy import clamp_competence, clamp_confusions, one_coin
from venire.scheduling.base import Learner
from venire.tools.arrays import Bools, Floats, Ints, softmax

Arrays = dict[str, NDArray[Any]]

#: Right and wrong pseudo-labels of a labeler without a stated competence.
BETTER_THAN_CHANCE: Final = (7.0, 3.0)

#: No estimated competence is taken to be above 1 - RHO.
RHO: Final = 0.01


class Guess(NamedTuple):
    """What is believed of the labelers: competences, and full matrices if there are any.

    `certainty` is the factor on the log-odds of verdicts (`estimators.certainty`), by
    gold once there is some (`estimators.gold.certainty_by_gold`). `tones` are matrices
    by labeler and tone, if there are any tones.
    """

    competences: Floats
    confusions: Floats | None = None
    prior: Floats | None = None
    certainty: float = 1.0
    tones: Floats | None = None

    def read(self, classes: int) -> tuple[Floats, Floats]:
        """Matrices and class shares, with defaults where there are none."""
        coins, even = one_coin(self.competences, classes), np.full(classes, 1 / classes)
        return (
            coins if self.confusions is None else self.confusions,
            even if self.prior is None else self.prior,
        )


class Memory(NamedTuple):
    """What is forgotten, and when.

    Labels of items before the last `window`; of each labeler all but the latest `half_life` / ln 2
    labels, which is the total weight of labels with a half-life; and all labels of a labeler for
    whom the test for drift raises an alarm. The probability of a false alarm is `drift` per 1,000
    labels.
    """

    window: int = 10_000
    half_life: float | None = None
    drift: float | None = 0.001


USUAL: Final = Memory()


class Shown(NamedTuple):
    """What explained the labels when labelers were last seen to err independently.

    `labels` is how many labels there were.
    """

    confusions: Floats
    priors: Floats
    labels: int


class Estimate:
    """What is known of a panel: its labels, and what the estimator says of them.

    To the estimator each tone in which a labeler speaks (`venire.estimators.voices`) is a labeler
    of its own. `owner` and `tone` say of each of them whose it is and which; without tones they are
    the labelers in their order.
    """

    def __init__(
        self,
        estimator: BaseEstimator,
        competences: Sequence[float | None],
        classes: int,
        prior: tuple[float, float] = BETTER_THAN_CHANCE,
        memory: Memory = USUAL,
        matrices: bool = True,
        rho: float = RHO,
    ) -> None:
        self.classes, self.prior, self.memory, self.matrices = classes, prior, memory, matrices
        self.rho = rho
        self.estimator = _with_stranger(estimator, prior, classes)
        self.stated = np.array([np.nan if p is None else p for p in competences])
        self.owner, self.tone = np.arange(len(self.stated)), np.zeros(len(self.stated), np.int64)
        self._families: dict[int, Hashable] = {}
        self.labels = np.zeros((0, 4), np.int64)
        self.gold: dict[int, int] = {}  # the class of items, where it is known
        self.found: Guess | None = None
        self.shown: Shown | None = None
        self.kin = np.full(len(self.stated), -1)  # who was then found to share errors with whom
        self.monitor = None if memory.drift is None else DriftMonitor(classes, memory.drift)
        if self.monitor is not None:
            self.monitor.expand(len(self.stated))

    def take(self, items: Ints, labelers: Ints, said: Ints, thorough: bool) -> None:
        """Add the labels; if `thorough`, fit all that are remembered."""
        who, what = self._by_voice(labelers, said)
        new = np.column_stack([items, who, what, np.zeros_like(said)])
        self.labels = np.concatenate([self.labels, new])
        if not thorough or not len(self.labels):
            return
        self._forget_items()
        self._watch()
        self._forget_old_labels()
        if len(self.labels):
            self._fit()

    def join(self, competence: float | None) -> None:
        self._add(int(self.owner.max(initial=-1)) + 1, 0, competence, -1)
        if self.found is not None:
            p = self._expected()[-1:]
            self._found_more(p, one_coin(p, self.classes))

    def _add(self, owner: int, tone: int, stated: float | None, kin: int) -> None:
        self.owner, self.tone = np.append(self.owner, owner), np.append(self.tone, tone)
        self.stated = np.append(self.stated, np.nan if stated is None else stated)
        self.kin = np.append(self.kin, kin)
        if self.monitor is not None:
            self.monitor.expand(len(self.stated))

    def _found_more(self, competence: Floats, matrix: Floats) -> None:
        """What is believed of one more, until the next fit."""
        if self.found is not None:
            p, square = self.found.competences, self.found.confusions
            square = None if square is None else np.concatenate([square, matrix])
            self.found = self.found._replace(
                competences=np.append(p, competence), confusions=square
            )

    # tones

    @property
    def _speaks(self) -> bool:
        """Whether anybody has more than one voice."""
        return bool(self.tone.any())

    def _by_voice(self, labelers: Ints, said: Ints) -> tuple[Ints, Ints]:
        """Who said each label, to the estimator, and which class; new voices are added."""
        tone = said // self.classes
        if not self._speaks and not tone.any():
            return labelers, said
        for m, t in np.unique(np.column_stack([labelers, tone])[tone > 0], axis=0).tolist():
            if not ((self.owner == m) & (self.tone == t)).any():
                self._add_voice(m, t)
        place = np.full((int(self.owner.max()) + 1, N_TONES), -1)
        place[self.owner, self.tone] = np.arange(len(self.owner))
        return place[labelers, tone], said % self.classes

    def _add_voice(self, labeler: int, tone: int) -> None:
        """A voice is believed to be what its labeler was, until it is heard."""
        own = int(np.flatnonzero((self.owner == labeler) & (self.tone == 0))[0])
        stated = self.stated[own]
        self._add(labeler, tone, None if np.isnan(stated) else float(stated), int(self.kin[own]))
        if self.found is not None:
            square = self.found.read(self.classes)[0]
            self._found_more(self.found.competences[own : own + 1], square[own : own + 1])
        if labeler in self._families:
            self._tell_families()

    def _of_labelers(self, found: Guess) -> Guess:
        """What is believed of labelers, from what is believed of their voices.

        The mean over the voices by how often each spoke, and the matrices of those that are heard.
        """
        labelers = int(self.owner.max()) + 1
        spoken = np.bincount(self.labels[:, LABELER], minlength=len(self.owner)).astype(np.float64)
        total = np.bincount(self.owner, spoken)[self.owner]
        share = np.where(total > 0, spoken / np.maximum(total, 1), self.tone == 0)
        mean = np.zeros((labelers, len(self.owner)))
        mean[self.owner, np.arange(len(self.owner))] = share
        each = found.read(self.classes)[0]
        square = np.tensordot(mean, each, axes=1)
        tones = np.repeat(square[:, None], N_TONES, axis=1)
        heard = self.tone > 0
        tones[self.owner[heard], self.tone[heard]] = each[heard]
        return found._replace(
            competences=mean @ found.competences,
            confusions=None if found.confusions is None else square,
            tones=tones,
        )

    def relate(self, families: Mapping[int, Hashable]) -> None:
        """From the next fit on these may share errors, if the estimator knows families."""
        if hasattr(self.estimator, "families"):
            self._families = dict(families)
            self.shown, self.kin = None, np.full(len(self.stated), -1)
            self._tell_families()

    def _tell_families(self) -> None:
        """Tell the estimator, if it knows families, which voices are of which."""
        kin, owners = self._families, enumerate(self.owner.tolist())
        told = {voice: kin[m] for voice, m in owners if m in kin}
        self.estimator = cast(
            BaseEstimator, replace(cast(Any, self.estimator), families=told or None)
        )

    def guess(self) -> Guess:
        """What the last fit found."""
        found = self.found or Guess(self._expected())
        return self._of_labelers(found) if self._speaks else found

    def _expected(self) -> Floats:
        """The competence of each labeler before any label: as stated, or that of an unknown one."""
        right, wrong = self.prior
        p = np.where(np.isnan(self.stated), right / (right + wrong), self.stated)
        return clamp_competence(p, self.classes, self.rho)

    # what is forgotten

    def _forget_items(self) -> None:
        names = np.unique(self.labels[:, ITEM])
        if len(names) > self.memory.window:
            oldest = int(names[-self.memory.window])
            self.labels = self.labels[self.labels[:, ITEM] >= oldest]
            self.gold = {item: k for item, k in self.gold.items() if item >= oldest}

    def _forget_old_labels(self) -> None:
        if self.memory.half_life is not None:
            self.labels = self.labels[latest(self.labels, self.memory.half_life)]

    def _watch(self) -> None:
        """Test labels for drift once their items have others; forget labelers who have changed."""
        if self.monitor is None or self.found is None:
            return
        changed = watch(self.monitor, self.labels, *self.found.read(self.classes))
        if len(changed):
            self.labels = self.labels[~np.isin(self.labels[:, LABELER], changed)]
            if self.shown is not None:
                self.shown = self.shown._replace(labels=0)  # a belief of them is not to be kept

    def alarms(self) -> Ints | None:
        if self.monitor is None or not self._speaks:
            return None if self.monitor is None else self.monitor.alarms
        return np.bincount(self.owner, self.monitor.alarms).astype(np.int64)

    # what is learned

    def _fit(self) -> None:
        """Fit the labels; if the latest of them do not fit what was found, forget the others."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # few labels, near chance: more will come
            table = self._table()
            fitted = self._fitted(table)
            since = self._since(table, fitted)
            if since is not None:
                self.labels = self.labels[self.labels[:, ITEM] >= table.items[since]]
                table, self.shown = self._table(), None
                fitted = self._fitted(table)
            found = self._kept(fitted) or self._settled(fitted)
        if found.prior is not None:
            shares = latest_shares(self.labels, *found.read(self.classes))
            found = found._replace(prior=shares)
        matrices, shares = found.read(self.classes)
        items, logs = opinions(self.labels, matrices, shares)
        sure = certainty(table, softmax(logs))
        rows = [row for row, item in enumerate(items.tolist()) if item in self.gold]
        if rows:
            truth = np.array([self.gold[item] for item in items[rows].tolist()], np.int64)
            place = np.searchsorted(items, self.labels[:, ITEM])
            codes = place, self.labels[:, LABELER], self.labels[:, SAID]
            alone = without_own_gold(*codes, logs, matrices, rows, truth)
            sure = certainty_by_gold(alone, truth, sure)
        self.found = found._replace(certainty=sure)

    def _since(self, table: LabelTable, fitted: BaseEstimator) -> int | None:
        """The first item since which labelers are others than they were, if tested and seen.

        They are compared with what explained the labels when errors last passed for independent.
        """
        if self.monitor is None or self.shown is None or not isinstance(fitted, Auto):
            return None
        coins = one_coin(self._expected()[len(self.shown.confusions) :], self.classes)
        what = np.concatenate([self.shown.confusions, coins]), self.shown.priors
        return changed_since(merge_clones(table, fitted.families_), *what)

    def _kept(self, fitted: BaseEstimator) -> Guess | None:
        """The belief of before, if it is as good: None if it is not.

        Errors that pass for independent at one time and nearly so at the next are the same errors:
        such a panel is not to be weighed by EM at one time and by the vote at the next.
        """
        if not isinstance(fitted, Auto):
            return None
        errors, before = fitted.independence_, self.shown
        if fitted.basis_ is Basis.EM:
            self.shown = Shown(fitted.confusions_, fitted.priors_, len(self.labels))
            self._relate(fitted.families_)
            return None
        nearly = errors.excess <= SHOWN_EXCESS + 2 * np.sqrt(2 / max(errors.pairs, 1))
        if before is None or self.gold or not nearly or len(self.labels) > 2 * before.labels:
            self.shown, self.kin = None, np.full(len(self.stated), -1)
            return None
        return self.found

    def _relate(self, families: Sequence[CloneGroup]) -> None:
        """Who shares errors is asked again in the next fit, however few labels show it there."""
        self.kin = np.full(len(self.stated), -1)
        for number, group in enumerate(families):
            if group.correlation >= STRENGTH:
                self.kin[np.array(group.members, np.int64)] = number

    def _table(self) -> LabelTable:
        names, index = np.unique(self.labels[:, ITEM], return_inverse=True)
        panel, classes = tuple(range(len(self.stated))), tuple(range(self.classes))
        codes = index, self.labels[:, LABELER], self.labels[:, SAID]
        return LabelTable.from_codes(*codes, tuple(names.tolist()), panel, classes)

    def _fitted(self, table: LabelTable) -> BaseEstimator:
        """The estimator, fitted; it is told the gold if it takes any."""
        fresh: Any = copy.copy(self.estimator)
        if (self.kin >= 0).any():
            found = {m: ("found", int(n)) for m, n in enumerate(self.kin) if n >= 0}
            fresh.families = found | dict(fresh.families or {})
        if self.gold and "gold" in inspect.signature(fresh.fit).parameters:
            return cast(BaseEstimator, fresh.fit(table, gold=self.gold))
        return cast(BaseEstimator, fresh.fit(table))

    def _settled(self, fitted: BaseEstimator) -> Guess:
        """What was fitted, shrunk towards the stated competences."""
        seen = np.bincount(self._checked(), minlength=len(self.stated))
        weight = np.where(np.isnan(self.stated), 0.0, sum(self.prior))
        share = np.divide(weight, weight + seen, out=np.zeros(len(seen)), where=weight + seen > 0)
        p = share * self._expected() + (1 - share) * fitted.competences_
        if isinstance(fitted, Auto) and fitted.basis_ is Basis.VOTE:
            p = np.where(seen == 0, self._expected(), p)  # nobody checked them
        p = clamp_competence(p, self.classes, self.rho)
        if not self.matrices or "confusions_" not in vars(fitted):
            return Guess(p)
        stated = one_coin(self._expected(), self.classes)
        rows = getattr(fitted, "rows_", fitted.confusions_)
        shares = getattr(fitted, "shares_", fitted.priors_).copy()
        square = share[:, None, None] * stated + (1 - share)[:, None, None] * rows
        return Guess(p, clamp_confusions(square, self.rho), shares)

    def _checked(self) -> Ints:
        """Who gave each label whose item has another, or gold: a lone label says nothing of it."""
        items, place, labels = np.unique(
            self.labels[:, ITEM], return_inverse=True, return_counts=True
        )
        several = (labels > 1) | np.isin(items, list(self.gold))
        return self.labels[several[place], LABELER]

    # snapshots

    def state(self) -> Arrays:
        state = {"stated": self.stated.copy(), "labels": self.labels.copy()}
        if self._speaks:
            state |= {"owner": self.owner.copy(), "tone": self.tone.copy()}
        if self.gold:
            state["gold"] = np.array(list(self.gold.items()), np.int64)
        if self.found is not None:
            named = self.found._asdict().items()
            state |= {f"found.{name}": np.array(a) for name, a in named if a is not None}
        if self.shown is not None:
            state |= {f"shown.{name}": np.array(a) for name, a in self.shown._asdict().items()}
            state["kin"] = self.kin.copy()
        if self.monitor is not None:
            own = self.monitor.arrays()
            state |= {f"monitor.{name}": getattr(self.monitor, name).copy() for name in own}
        return state

    def restore(self, state: Arrays) -> None:
        """Continue from there; also from snapshots of earlier versions."""
        if "labels" not in state:
            state = labels_of_stream(state)
        stated = "stated" if "stated" in state else "given"
        self.stated, labels = state[stated].copy(), state["labels"]
        self.owner = state["owner"].copy() if "owner" in state else np.arange(len(self.stated))
        self.tone = state["tone"].copy() if "tone" in state else np.zeros_like(self.owner)
        if self._families and self._speaks:
            self._tell_families()
        self.labels = np.zeros((len(labels), 4), np.int64)
        self.labels[:, : labels.shape[1]] = labels
        self.gold = {int(item): int(k) for item, k in state.get("gold", ())}
        found: dict[str, Any] = {
            n: state[f"found.{n}"].copy() for n in Guess._fields if f"found.{n}" in state
        }
        if "certainty" in found:
            found["certainty"] = float(found["certainty"])
        self.found = Guess(**found) if found else None
        shown = {n: state[f"shown.{n}"].copy() for n in Shown._fields if f"shown.{n}" in state}
        if shown:
            self.shown = Shown(shown["confusions"], shown["priors"], int(shown["labels"]))
        self.kin = state["kin"].copy() if shown else np.full(len(self.stated), -1)
        if self.monitor is not None:
            self.monitor.expand(len(self.stated))
            for name in (n for n in self.monitor.arrays() if f"monitor.{n}" in state):
                setattr(self.monitor, name, state[f"monitor.{name}"].copy())


def _with_stranger(
    estimator: BaseEstimator, prior: tuple[float, float], classes: int
) -> BaseEstimator:
    """The estimator, with its `stranger` set if it has that field and it is None."""
    if getattr(estimator, "stranger", estimator) is not None:
        return estimator
    right, wrong = prior
    square = np.where(np.eye(classes, dtype=np.bool_), right, wrong / (classes - 1))
    return cast(BaseEstimator, replace(cast(Any, estimator), stranger=square))


#: The fewest items of a class, and the least mean probability of an item of it; and from where on a
#: class that stood out no longer does, so that costs do not come and go.
FEWEST: Final = 10.0
PURE: Final = 0.8
FEWEST_LEFT: Final = 5.0
PURE_LEFT: Final = 0.6


def distinct_classes(
    labels: Ints,
    found: Guess | None,
    classes: int,
    gold: Mapping[int, int] | None = None,
    before: NDArray[np.bool_] | None = None,
) -> NDArray[np.bool_]:
    """For each class, whether it stands out under what was found; no class if nothing was.

    The class of items with gold is known. `before` says which classes stood out so far.

    >>> labels = np.array([(s, m, int(s < 20), 0) for s in range(100) for m in range(3)])
    >>> rows = np.array([[[0.95, 0.05], [0.1, 0.9]]] * 3)
    >>> good = Guess(np.full(3, 0.9), rows, np.array([0.8, 0.2]))
    >>> distinct_classes(labels, good, 2).tolist()
    [True, True]
    >>> distinct_classes(labels[30:], good, 2).tolist()  # ten items of the second class
    [True, False]
    >>> distinct_classes(labels[30:], good, 2, before=np.array([True, True])).tolist()
    [True, True]
    >>> distinct_classes(labels[30:], good, 2, {s: 1 for s in range(20)}).tolist()
    [True, True]
    >>> distinct_classes(labels, good._replace(prior=np.array([0.5, 0.5])), 2).tolist()
    [False, False]
    """
    unknown = found is None or (found.prior is not None and not np.ptp(found.prior))
    if found is None or unknown or not len(labels):
        return np.zeros(classes, np.bool_)
    items, logs = opinions(labels, *found.read(classes))
    q, gold = softmax(logs), gold or {}
    known = np.isin(items, list(gold))
    q[known] = np.eye(classes)[[gold[item] for item in items[known].tolist()]]
    squares, sums = (q**2).sum(axis=0), q.sum(axis=0)
    stood = np.zeros(classes, np.bool_) if before is None else before
    fewest, pure = np.where(stood, FEWEST_LEFT, FEWEST), np.where(stood, PURE_LEFT, PURE)
    return np.asarray((squares >= fewest) & (squares >= pure * sums))


def labels_of_stream(state: Arrays) -> Arrays:
    """From an old snapshot of a stream of incremental EM: its labels and estimates."""
    header = json.loads(state["header"].tobytes())
    rows = [(*row, 1) for row in old_labels(header, state)]
    confusions = np.exp(state["counts.log_said"]).transpose(0, 2, 1)
    prior = np.exp(state["counts.log_class"])
    kept = {
        "stated": np.full(len(confusions), np.nan),
        "labels": np.array(sorted(rows), np.int64).reshape(-1, 4),
        "found.competences": np.einsum("mkk,k->m", confusions, prior),
    }
    if header["parameters"]["model"] != "one-coin":
        kept |= {"found.confusions": confusions, "found.prior": prior}
    return kept


class EstimateLearner(Learner):
    """A learner whose belief is an estimate of labels that it keeps."""

    voices = True

    def __init__(self, estimate: Estimate) -> None:
        self.estimate = estimate
        self.distinct = np.zeros(estimate.classes, np.bool_)

    def told_apart(self) -> Bools:
        kept, before = self.estimate, self.distinct
        return distinct_classes(kept.labels, kept.found, kept.classes, kept.gold, before)

    def gold(self, item: int, label: int) -> None:
        self.estimate.gold[item] = label

    def relate(self, families: Mapping[int, Hashable]) -> None:
        self.estimate.relate(families)

    def alarms(self) -> Ints | None:
        return self.estimate.alarms()
