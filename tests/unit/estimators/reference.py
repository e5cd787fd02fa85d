"""Algorithm 3 (Online Learn) in plain Python: slow, dense, obviously what the paper says.

`said[s][m]` is the class that labeler m gave item s, None where it gave none.
"""

import math
from collections.abc import Iterable
from itertools import combinations

Row = list[int | None]
Moments = dict[tuple[int, int], float]

TINY = 1e-10


def moments(said: list[Row], classes: int, min_overlap: int = 10) -> Moments:
    labelers = range(len(said[0]))
    both = {
        (a, b): [(row[a], row[b]) for row in said if None not in (row[a], row[b])]
        for a in labelers
        for b in labelers
    }
    most = max((len(v) for (a, b), v in both.items() if a != b), default=0)
    enough = max(1, min(min_overlap, most))
    N: Moments = {}
    for pair, labels in both.items():
        if len(labels) >= enough:
            share = sum(x == y for x, y in labels) / len(labels)
            N[pair] = (classes - 1) / classes * (share - 1 / classes)
    return N


def sign(x: float) -> int:
    return (x > 0) - (x < 0)


def best_pair(N: Moments, i: int, labelers: Iterable[int]) -> tuple[int, int] | None:
    best: tuple[int, int] | None = None
    for m, other in combinations(labelers, 2):
        if i in (m, other) or not {(i, m), (i, other), (m, other)} <= N.keys():
            continue
        if best is None or abs(N[m, other]) > abs(N[best]):
            best = m, other
    return best


def spectral(
    said: list[Row], classes: int, min_overlap: int = 10, literal: bool = False
) -> list[float]:
    N = moments(said, classes, min_overlap)
    labelers = range(len(said[0]))
    pairs = {i: best_pair(N, i, labelers) for i in labelers}
    anchor = next((pair[0] for pair in pairs.values() if pair), None)
    edge: dict[int, float] = {}
    for i, pair in pairs.items():
        if pair is None or anchor is None:
            continue
        m, other = pair
        if (i, anchor) in N:
            side = sign(N[i, anchor])
        else:
            side = sign(N[i, m]) * (sign(N[m, anchor]) if (m, anchor) in N else 1)
        radicand = N[i, m] * N[i, other] / N[m, other] if N[m, other] else 0.0
        edge[i] = side * math.sqrt(max(radicand, 0.0))
    if not any(edge.values()):
        return [(1 + 1 / classes) / 2] * len(labelers)
    mean = sum(edge.values()) / len(edge)
    if (mean >= 0) if literal else (mean < 0):
        edge = {i: -x for i, x in edge.items()}
        mean = -mean
    low, high = -0.8 / classes, 0.8 * (1 - 1 / classes)
    return [1 / classes + min(max(edge.get(i, mean), low), high) for i in labelers]


def posterior(row: Row, p: list[float], classes: int) -> tuple[list[float], float]:
    """The posterior of one item, and the log-likelihood of its labels."""
    logs = []
    for k in range(classes):
        total = -math.log(classes)
        for m, x in enumerate(row):
            if x is not None:
                total += math.log(p[m]) if x == k else math.log((1 - p[m]) / (classes - 1))
        logs.append(total)
    top = max(logs)
    norm = sum(math.exp(x - top) for x in logs)
    return [math.exp(x - top) / norm for x in logs], top + math.log(norm)


def online_learn(
    said: list[Row],
    classes: int,
    iterations: int,
    prior: tuple[float, float] = (0.0, 0.0),
    start: Iterable[float] | None = None,
) -> tuple[list[float], list[list[float]], float]:
    """Competences, posteriors and log-likelihood after so many EM iterations."""
    p = spectral(said, classes) if start is None else list(start)
    for _ in range(iterations):
        q = [posterior(row, p, classes)[0] for row in said]
        for m in range(len(p)):
            right = [q[s][x] for s, row in enumerate(said) if (x := row[m]) is not None]
            count, total = sum(right) + prior[0], len(right) + sum(prior)
            if total:
                p[m] = min(max(count / total, TINY), 1 - TINY)
    rows = [posterior(row, p, classes) for row in said]
    return p, [q for q, _ in rows], sum(ll for _, ll in rows)


def full_posterior(
    row: Row, P: list[list[list[float]]], pi: list[float]
) -> tuple[list[float], float]:
    """The posterior of one item with full confusion matrices, and its log-likelihood."""
    logs = [
        math.log(pi[k]) + sum(math.log(P[m][k][x]) for m, x in enumerate(row) if x is not None)
        for k in range(len(pi))
    ]
    top = max(logs)
    norm = sum(math.exp(x - top) for x in logs)
    return [math.exp(x - top) / norm for x in logs], top + math.log(norm)


def full_m_step(
    said: list[Row], q: list[list[float]], before: list[list[list[float]]], classes: int
) -> tuple[list[list[list[float]]], list[float]]:
    P = []
    for m in range(len(said[0])):
        rows = []
        for k in range(classes):
            counts = [
                sum(q[s][k] for s, row in enumerate(said) if row[m] == l) for l in range(classes)
            ]
            total = sum(counts)
            rows.append([max(c / total, TINY) for c in counts] if total else before[m][k])
        P.append(rows)
    sizes = [
        sum(q[s][k] for s, row in enumerate(said) if any(x is not None for x in row))
        for k in range(classes)
    ]
    return P, [max(x / sum(sizes), TINY) for x in sizes]


def dawid_skene(
    said: list[Row], classes: int, iterations: int
) -> tuple[list[list[list[float]]], list[float], list[list[float]], float]:
    """Confusions, class prior, posteriors and log-likelihood: maximum likelihood from the votes."""
    q = []
    for row in said:
        votes = [sum(x == k for x in row) for k in range(classes)]
        q.append([v / max(1, sum(votes)) for v in votes])
    P = [[[1 / classes] * classes for _ in range(classes)] for _ in said[0]]
    P, pi = full_m_step(said, q, P, classes)
    for _ in range(iterations):
        q = [full_posterior(row, P, pi)[0] for row in said]
        P, pi = full_m_step(said, q, P, classes)
    rows = [full_posterior(row, P, pi) for row in said if any(x is not None for x in row)]
    return P, pi, [full_posterior(row, P, pi)[0] for row in said], sum(ll for _, ll in rows)
