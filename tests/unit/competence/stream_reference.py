"""Incremental EM in plain Python: slow, by dictionaries, obviously what `Streaming` says."""

import math
from typing import NamedTuple


class Label(NamedTuple):
    item: int
    labeler: int
    said: int


class Reference:
    """`labels` by item, `q` as each item was last visited; counts are summed afresh each time."""

    def __init__(
        self, K: int, labelers: int, prior: list[list[float]], one_coin: bool, half_life: float = 0
    ) -> None:
        self.K, self.M, self.prior, self.one_coin = K, labelers, prior, one_coin
        self.half_life = half_life
        self.labels: dict[int, dict[int, tuple[int, int]]] = {}
        self.q: dict[int, list[float]] = {}
        self.clock = [0] * labelers
        self.cursor = 0
        self.maximise()

    def count(self, m: int, k: int, x: int) -> float:
        total = 0.0
        for i, given in self.labels.items():
            if m in given and given[m][0] == x and i in self.q:
                age = self.clock[m] - given[m][1]
                total += self.q[i][k] * (2 ** (-age / self.half_life) if self.half_life else 1)
        return total

    def maximise(self) -> None:
        K = self.K
        self.P = []
        for m in range(self.M):
            n = [[self.count(m, k, x) + self.prior[k][x] for x in range(K)] for k in range(K)]
            if self.one_coin:
                p = sum(n[k][k] for k in range(K)) / sum(map(sum, n))
                wrong = (1 - p) / (K - 1)
                self.P.append([[p if x == k else wrong for x in range(K)] for k in range(K)])
            else:
                self.P.append([[n[k][x] / sum(n[k]) for x in range(K)] for k in range(K)])
        classes = [1 + sum(q[k] for q in self.q.values()) for k in range(K)]
        self.pi = [1 / K if self.one_coin else c / sum(classes) for c in classes]

    def belief(self, i: int) -> list[float]:
        logs = [
            math.log(self.pi[k])
            + sum(math.log(self.P[m][k][x]) for m, (x, _) in self.labels[i].items())
            for k in range(self.K)
        ]
        odds = [math.exp(v - max(logs)) for v in logs]
        return [v / sum(odds) for v in odds]

    def visit(self, items: list[int]) -> None:
        self.q |= {i: self.belief(i) for i in items}
        self.maximise()

    def partial_fit(self, batch: list[Label], sweeps: int) -> None:
        for label in batch:
            self.clock[label.labeler] += 1
        for i, m, x in batch:
            self.labels.setdefault(i, {})[m] = x, self.clock[m]
        self.visit(sorted({label.item for label in batch}))
        window = list(self.labels)
        for _ in range(sweeps):
            left = len(batch)
            turn: list[int] = []
            while left > 0 and len(turn) < len(window):
                i = window[self.cursor % len(window)]
                self.cursor = self.cursor % len(window) + 1
                turn.append(i)
                left -= len(self.labels[i])
            self.visit(turn)
