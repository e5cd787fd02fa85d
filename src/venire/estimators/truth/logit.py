r"""Logistic regression over classes, with a prior of each weight.

Class k of item i has the score z_ik = o_ik + sum_f x_ikf w_f, and the probability
exp z_ik / sum_l exp z_il (McFadden's conditional logit: one weight for each feature, whatever the
number of classes). Weights are normal a priori, so some tens of items can teach hundreds of them.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from venire.tools.arrays import Floats, Ints, softmax

#: Newton steps; a handful is enough, since the penalised likelihood is concave.
STEPS: Final = 50
CLOSE: Final = 1e-9


class Logit(NamedTuple):
    """The most probable weights, the log-evidence of the model, and predictions for its own items.

    `left_out` has, for each item, the probabilities by the weights that the other items give, to
    one Newton step.
    """

    weights: Floats
    evidence: float
    left_out: Floats


def fit_logit(features: Floats, offset: Floats, truth: Ints, mean: Floats, spread: Floats) -> Logit:
    """Fit items x classes x features to the truth; weights are normal around `mean` a priori.

    The evidence is Laplace's approximation.

    >>> x = np.array([[[1.0], [0.0]], [[0.0], [1.0]], [[1.0], [0.0]]])
    >>> found = fit_logit(x, np.zeros((3, 2)), np.array([0, 1, 0]), np.zeros(1), np.ones(1))
    >>> found.weights.round(2).tolist(), round(found.evidence, 2)
    ([0.88], -1.67)
    >>> found.left_out[0].round(2).tolist()
    [0.66, 0.34]
    """
    weights, precision = mean.astype(np.float64), spread**-2.0
    height, z = _height(weights, features, offset, truth, mean, precision)
    for _ in range(STEPS):
        slope, curvature = _derivatives(z, features, truth, precision * (weights - mean), precision)
        step = np.linalg.solve(curvature, slope)
        for scale in 0.5 ** np.arange(20):
            there = weights + scale * step
            higher, scores = _height(there, features, offset, truth, mean, precision)
            if higher >= height:
                break
        else:
            break
        gained, weights, height, z = higher - height, there, higher, scores
        if gained < CLOSE:
            break
    _, curvature = _derivatives(z, features, truth, precision * (weights - mean), precision)
    determinant = float(np.linalg.slogdet(curvature)[1])
    evidence = height + (float(np.log(precision).sum()) - determinant) / 2
    covariance = np.asarray(np.linalg.inv(curvature), np.float64)
    return Logit(weights, evidence, _left_out(z, features, truth, covariance))


def log_sums(values: Floats, axis: int) -> Floats:
    """The logarithm of the sum of the exponentials along an axis.

    >>> float(np.exp(log_sums(np.log([1.0, 3.0]), 0)).round(6))
    4.0
    """
    top = values.max(axis=axis, keepdims=True)
    found = np.log(np.exp(values - top).sum(axis=axis, keepdims=True)) + top
    return np.asarray(found.squeeze(axis))


def _height(
    weights: Floats, features: Floats, offset: Floats, truth: Ints, mean: Floats, precision: Floats
) -> tuple[float, Floats]:
    """The log-likelihood with the prior, less its constant, and the scores."""
    z = features @ weights + offset
    likelihood = float((z[np.arange(len(truth)), truth] - log_sums(z, 1)).sum())
    return likelihood - float((precision * (weights - mean) ** 2).sum()) / 2, z


def _derivatives(
    z: Floats, features: Floats, truth: Ints, pull: Floats, precision: Floats
) -> tuple[Floats, Floats]:
    """The gradient, and the negative of the second derivative."""
    p = softmax(z)
    centre = np.einsum("gk,gkf->gf", p, features)
    slope = (features[np.arange(len(truth)), truth] - centre).sum(axis=0) - pull
    rows = np.sqrt(p)[:, :, None] * (features - centre[:, None, :])
    rows = rows.reshape(-1, features.shape[2])
    return slope, rows.T @ rows + np.diag(precision)


def _left_out(z: Floats, features: Floats, truth: Ints, covariance: Floats) -> Floats:
    """Each item's probabilities without it: one Newton step from the weights of all.

    Without item i the second derivative loses X_i' S_i X_i. With A = X_i C X_i' and the gradient
    g_i of the item, Woodbury's identity turns the step into (I - A S_i)^-1 A g_i.
    """
    K = z.shape[1]
    p, one = softmax(z), np.eye(K)
    spread = np.einsum("gkf,fh,glh->gkl", features, covariance, features, optimize=True)
    inner = one - spread @ (p[:, :, None] * (one - p[:, None, :]))
    pull = spread @ (one[truth] - p)[:, :, None]
    return softmax(z - np.linalg.solve(inner, pull)[:, :, 0])
