"""Class shares by agreement, and the likelihood with gold, in plain Python.

`said[s][m]` is the class that labeler m gave item s, None where it gave none.
"""

import math
from itertools import combinations

Row = list[int | None]


def agreed_shares(said: list[Row], classes: int) -> list[float]:
    """Each pair of labels of an item counts 2 / n, so that an item with n labels counts n - 1."""
    pairs = agree = 0.0
    votes, items = [0.0] * classes, 0
    for row in said:
        labels = [x for x in row if x is not None]
        if len(labels) < 2:
            continue
        items += 1
        for x, y in combinations(labels, 2):
            pairs += 2 / len(labels)
            agree += (x == y) * 2 / len(labels)
            for k in range(classes):
                votes[k] += ((x == k) + (y == k)) / len(labels)
    if not items:
        return [1 / classes] * classes
    beyond = max((classes - 1) * (classes * agree / pairs - 1), 0.0)
    p = (1 + math.sqrt(beyond)) / classes
    wrong = (1 - p) / (classes - 1)
    counts = [max(v / pairs - wrong, 0) / max(p - wrong, 1e-3) * items + 1 for v in votes]
    return [c / sum(counts) for c in counts]


def unmixed(
    rows: list[list[list[float]]], counts: list[list[list[float]]], q: list[list[float]]
) -> list[list[list[float]]]:
    K = len(q[0])
    found = []
    for row, count in zip(rows, counts, strict=True):
        right = (sum(count[k][k] for k in range(K)) + 2) / (sum(map(sum, count)) + 3)
        right = min(max(right, 1 / K), 0.99)
        made = []
        for k in range(K):
            pure = sum(x[k] ** 2 for x in q) / max(sum(x[k] for x in q), 1e-9)
            coin = [right if j == k else (1 - right) / (K - 1) for j in range(K)]
            made.append([pure * a + (1 - pure) * b for a, b in zip(row[k], coin, strict=True)])
        found.append(made)
    return found


def log_likelihood(
    said: list[Row], rows: list[list[list[float]]], shares: list[float], known: list[int]
) -> float:
    """Of the labels of all items, and of the classes that are known (-1: not known)."""
    total = 0.0
    for row, gold in zip(said, known, strict=True):
        if any(x is not None for x in row):
            of = [
                math.prod([s, *(rows[m][k][x] for m, x in enumerate(row) if x is not None)])
                for k, s in enumerate(shares)
            ]
            total += math.log(sum(of) if gold < 0 else of[gold])
    return total
