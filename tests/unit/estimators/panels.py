"""Panels whose skills are known, for the coverage of skill intervals."""

import numpy as np
from numpy.typing import NDArray

from venire.labels import LabelTable

Floats = NDArray[np.float64]
World = tuple[LabelTable, Floats]


def coin_world(seed: int, classes: int, labelers: int, items: int, each: int) -> World:
    """(table, skills): one competence per labeler, `each` labels an item."""
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.55, 0.95, labelers) if classes == 2 else rng.uniform(0.4, 0.9, labelers)
    off = np.where(np.eye(classes) > 0, 0.0, 1 / (classes - 1))
    confusions = np.eye(classes) * p[:, None, None] + off * (1 - p)[:, None, None]
    return _said(rng, confusions, np.full(classes, 1 / classes), items, each), p


def full_world(seed: int, classes: int, labelers: int, items: int, each: int) -> World:
    """(table, skills): skill differs by labeler and class, errors go where the panel's go."""
    rng = np.random.default_rng(seed)
    priors = rng.dirichlet(np.full(classes, 10.0))
    errors = rng.dirichlet(np.ones(classes), classes)
    np.fill_diagonal(errors, 0.0)
    errors /= errors.sum(axis=1, keepdims=True)
    logit = rng.normal(1.3, 0.7, (labelers, 1)) + rng.normal(0, 0.5, (labelers, classes))
    right = 1 / (1 + np.exp(-logit))
    confusions = errors * (1 - right)[:, :, None] + np.eye(classes) * right[:, :, None]
    return _said(rng, confusions, priors, items, each), right @ priors


def _said(
    rng: np.random.Generator, confusions: Floats, priors: Floats, items: int, each: int
) -> LabelTable:
    labelers, classes = confusions.shape[:2]
    truth = rng.choice(classes, items, p=priors)
    who = np.argsort(rng.random((items, labelers)), axis=1)[:, :each].ravel()
    item = np.repeat(np.arange(items), each)
    steps = confusions[who, truth[item]].cumsum(axis=1)
    said = (rng.random((item.size, 1)) > steps).sum(axis=1).clip(0, classes - 1)
    return LabelTable.from_codes(item, who, said, range(items), range(labelers), range(classes))
