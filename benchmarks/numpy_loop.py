"""Algorithm 1 as one writes it with NumPy: one pass over the queue for each labeler.

It computes the residuals as the kernel does, to the bit, so that assignments can be compared.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Given = list[tuple[int, int]]


def residual(weight: Floats, evidence: Floats) -> Floats:
    exact = weight * np.exp(-evidence)
    scaled = exact * 8193.0
    return np.asarray(scaled - (scaled - exact))


class NumpyQueue:
    """The outstanding items as arrays."""

    def __init__(self, evidence: Floats, capacity: NDArray[np.int64]) -> None:
        self.value = evidence
        self.reach = -np.expm1(-evidence)
        self.capacity = capacity
        self.order = np.argsort(-self.reach, kind="stable")
        self.row = np.zeros(0, np.int64)
        self.weight = np.zeros(0)
        self.evidence = np.zeros(0)
        self.last = np.zeros(0)
        self.used = np.zeros((0, len(evidence)), bool)

    def arrive(self, row: NDArray[np.int64], weight: Floats, slot: int) -> None:
        n = len(row)
        self.row = np.append(self.row, row)
        self.weight = np.append(self.weight, weight)
        self.evidence = np.append(self.evidence, np.zeros(n))
        self.last = np.append(self.last, np.full(n, slot))
        self.used = np.vstack([self.used, np.zeros((n, len(self.value)), bool)])

    def serve(self, slot: int) -> Given:
        given: Given = []
        for m in self.order:
            for _ in range(self.capacity[m]):
                if not len(self.row):
                    return given
                gain = residual(self.weight, self.evidence) * self.reach[m] - (slot - self.last)
                gain[self.used[:, m]] = -np.inf
                i = int(np.argmax(gain))
                if gain[i] <= 0:
                    break
                given.append((int(self.row[i]), int(m)))
                self.evidence[i] += self.value[m]
                self.last[i] = slot
                self.used[i, m] = True
        return given

    def settle(self, slot: int) -> None:
        if not len(self.row):
            return
        left = residual(self.weight, self.evidence)
        best = np.where(self.used, 0.0, self.reach).max(axis=1)
        stay = left * best - (slot + 1 - self.last) > 0
        for name in ("row", "weight", "evidence", "last", "used"):
            setattr(self, name, getattr(self, name)[stay])


class NumpyRun:
    """A whole run: the queue above, and what a simulation does besides: labels and verdicts."""

    def __init__(self, competence: Floats, evidence: Floats, vote: Floats, items: int) -> None:
        self.competence, self.vote = competence, vote
        self.queue = NumpyQueue(evidence, np.ones(len(evidence), np.int64))
        self.rng = np.random.default_rng(0)
        self.score = np.zeros(items)
        self.verdict = np.full(items, -1)
        self.exit = np.zeros(items, np.int64)
        self.given: Given = []

    def slot(self, slot: int, row: NDArray[np.int64], weight: Floats, truth: Floats) -> None:
        self.queue.arrive(row, weight, slot)
        given = self.queue.serve(slot)
        self.given += given
        if given:
            rows, labelers = np.array(given).T
            right = self.rng.random(len(rows)) < self.competence[labelers]
            said = np.where(right, truth[rows], -truth[rows])
            np.add.at(self.score, rows, said * self.vote[labelers])
        before = self.queue.row
        self.queue.settle(slot)
        left = np.setdiff1d(before, self.queue.row, assume_unique=True)
        self.exit[left] = slot
        self.verdict[left] = np.where(self.score[left] > 0, 0, 1)
