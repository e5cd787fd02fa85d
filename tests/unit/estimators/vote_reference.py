"""Votes, pairs and dependence in plain Python: slow, dense, obviously what the formulas say.

`said[s][m]` is the class that labeler m gave item s, None where it gave none.
"""

import math
from itertools import combinations

Row = list[int | None]
TIE = 1e-9


def shares(row: Row, weight: list[float], classes: int) -> list[float]:
    votes = [0.0] * classes
    for m, x in enumerate(row):
        if x is not None:
            votes[x] += weight[m]
    if sum(votes) <= 0:
        votes = [float(sum(x == k for x in row)) for k in range(classes)]
    total = sum(votes)
    return [v / total for v in votes] if total else [1 / classes] * classes


def weighted(
    said: list[Row], classes: int, iterations: int, shrink: float = 4.0
) -> tuple[list[float], list[list[float]]]:
    """Weights and posteriors after so many rounds."""
    M = len(said[0])
    w = [1.0] * M
    for _ in range(iterations):
        agreed, given = [0.0] * M, [0] * M
        for row in said:
            q = shares(row, w, classes)
            top = [k for k in range(classes) if q[k] >= max(q) - TIE]
            for m, x in enumerate(row):
                if x is not None:
                    given[m] += 1
                    agreed[m] += (x in top) / len(top)
        mean = sum(agreed) / max(sum(given), 1)
        a = [(agreed[m] + shrink * mean) / (given[m] + shrink) for m in range(M)]
        w = [max(0.0, classes * x - 1) / (classes - 1) for x in a]
        if not any(w):
            w = [1.0] * M
    return w, [shares(row, w, classes) for row in said]


def corrected_agreement(said: list[Row], a: int, b: int, classes: int) -> float:
    both = [(row[a], row[b]) for row in said if row[a] is not None and row[b] is not None]
    if not both:
        return 0.0
    n = len(both)
    p = [sum(x == k for x, _ in both) / n for k in range(classes)]
    q = [sum(y == k for _, y in both) / n for k in range(classes)]
    scale = math.sqrt((1 - sum(x * x for x in p)) * (1 - sum(y * y for y in q)))
    chance = sum(x * y for x, y in zip(p, q, strict=True))
    return (sum(x == y for x, y in both) / n - chance) / scale if scale > 1e-9 else 0.0


def dependence(said: list[Row], q: list[list[float]], confusions: list[list[list[float]]]) -> float:
    top = bottom = 0.0
    classes = len(q[0])
    for row, posterior in zip(said, q, strict=True):
        who = [m for m, x in enumerate(row) if x is not None]
        for k in range(classes):
            for m, n in combinations(who, 2):
                rows = confusions[m][k], confusions[n][k]
                r = [
                    [(row[j] == c) - p[c] for c in range(classes)]
                    for j, p in zip((m, n), rows, strict=True)
                ]
                top += 2 * posterior[k] * sum(x * y for x, y in zip(*r, strict=True))
                sizes = [math.sqrt(max(0.0, 1 - sum(x * x for x in p))) for p in rows]
                bottom += 2 * posterior[k] * sizes[0] * sizes[1]
    return top / bottom if bottom else 0.0
