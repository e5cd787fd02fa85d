"""The compiled loop of Gibbs sampling: draw the class of each item, count the labels."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from venire.estimators.passes.em import SHORT
from venire.tools import splitmix
from venire.tools.compiling import inlined, threaded
from venire.tools.splitmix import GOLDEN

__all__ = ["draw_pass"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Codes = NDArray[np.integer[Any]]

mix = inlined(splitmix.mix)


@threaded()
def draw_pass(
    lengths: Ints,
    code: Codes,
    order: Codes,
    log_said: Floats,
    said: Floats,
    log_prior: Floats,
    seed: np.uint64,
    block: int,
    sums: Floats,
    posteriors: Floats,
) -> float:
    """As `full_pass`, but the class of each item is drawn from its posterior, and counted whole.

    The random numbers belong to the seed and the block, so threads do not matter.
    """
    K = log_prior.size
    counts = sums[K:].reshape((-1, K))
    odds, prior = np.empty(K), np.exp(log_prior)
    state = mix(seed + np.uint64(block) * GOLDEN)
    e = np.uint64(0)
    for n in range(1, lengths.size):
        step = np.uint64(n)
        for _ in range(lengths[n]):
            if n <= SHORT:
                for k in range(K):
                    odds[k] = prior[k]
                for f in range(e, e + step):
                    for k in range(K):
                        odds[k] *= said[np.uint64(code[f]), k]
            else:
                for k in range(K):
                    odds[k] = log_prior[k]
                for f in range(e, e + step):
                    for k in range(K):
                        odds[k] += log_said[np.uint64(code[f]), k]
                top = odds[0]
                for k in range(1, K):
                    top = max(top, odds[k])
                for k in range(K):
                    odds[k] = math.exp(odds[k] - top)
            for k in range(1, K):
                odds[k] += odds[k - 1]
            state += GOLDEN
            u = float(mix(state) >> np.uint64(11)) * 2.0**-53 * odds[K - 1]
            drawn = 0
            while drawn < K - 1 and odds[drawn] <= u:
                drawn += 1
            sums[drawn] += 1.0
            for f in range(e, e + step):
                counts[np.uint64(code[f]), drawn] += 1.0
            e += step
    return 0.0
