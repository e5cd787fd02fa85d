"""Plain references of what the batch computes in arrays."""

from __future__ import annotations

import math

import numpy as np

from venire.batch.choice import NOISE
from venire.batch.labelers import Work

MASK = 2**64 - 1


def draw(seed: int, a: int, b: int) -> float:
    """The draw of a seed and two numbers, with Python's own integers."""
    z = seed * 0x9E3779B97F4A7C15 + a * 0xD1B54A32D192ED03 + b * 0x8CB92BA72F3D8DD7
    z &= MASK
    for _ in range(2):
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        z ^= z >> 31
    return (z >> 11) * 2.0**-53


def best(
    work: Work,
    said: list[int],
    left: list[float],
    pair: list[tuple[int, int]],
    evidence: np.ndarray,
    kinship: np.ndarray,
    price: list[float],
    seed: int,
) -> list[tuple[int, float]]:
    """The best free entry of each item and its value, one entry after the other."""
    found = []
    for i in range(len(work.items)):
        entries = range(int(work.start[i]), int(work.start[i + 1]))
        here = [int(work.labeler[e]) for e in entries if said[e] >= 0]
        top = (0, 0.0)
        for e in entries:
            m = int(work.labeler[e])
            if said[e] != -1 or math.isinf(price[m]) or left[i] <= 0:
                continue
            akin = max((float(kinship[n, m]) for n in here), default=0.0)
            told = (1 - akin) * float(evidence[m, pair[i][0], pair[i][1]])
            noise = 1 + NOISE * (2 * draw(seed, i, m) - 1)
            value = left[i] * -math.expm1(-told) / price[m] * noise
            if value > top[1]:
                top = e, value
        found.append(top)
    return found


def posterior(
    labels: list[tuple[int, int]], confusions: np.ndarray, shares: np.ndarray
) -> np.ndarray:
    """Bayes' rule, label by label: (labeler, said)."""
    q = np.array(shares, dtype=float)
    for labeler, said in labels:
        q = q * confusions[labeler, :, said]
        q = q / q.sum()
    return q
