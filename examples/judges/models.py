"""Five small judges of different strength, trained when the server starts, in two seconds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from examples.judges.digits import look, split


class Model:
    """A classifier that sees some of the pixels, and how it is asked."""

    def __init__(self, kind: Any, learn_from: int, pixels: slice = slice(None)) -> None:
        self.kind, self.learn_from, self.pixels = kind, learn_from, pixels

    def train(self, seed: int, drawings: Sequence[str], digits: Sequence[str]) -> None:
        some = np.random.default_rng(seed).choice(len(digits), self.learn_from, replace=False)
        seen = np.array([look(drawings[n])[self.pixels] for n in some])
        self.kind.fit(seen, [digits[n] for n in some])

    def shares(self, *texts: str) -> list[dict[str, float]]:
        """How probable each digit is, of each drawing."""
        seen: NDArray[Any] = np.array([look(text)[self.pixels] for text in texts])
        names = [str(name) for name in self.kind.classes_]
        rows = self.kind.predict_proba(seen)
        return [dict(zip(names, map(float, row), strict=True)) for row in rows]


def trained(seed: int = 0) -> dict[str, Model]:
    """The five, by name; each has learned from drawings of its own choice."""
    models = {
        "forest-100": Model(RandomForestClassifier(30, random_state=seed, n_jobs=1), 100),
        "logistic-60": Model(LogisticRegression(max_iter=500), 60),
        "neighbours-40": Model(KNeighborsClassifier(3), 40),
        "bayes-upper-half": Model(GaussianNB(var_smoothing=0.03), 200, slice(0, 32)),
        "tree-200": Model(DecisionTreeClassifier(max_depth=6, random_state=seed), 200),
    }
    drawings, digits, _, _ = split(seed)
    for n, model in enumerate(models.values()):
        model.train(seed + 1000 * n, drawings, digits)
    return models
