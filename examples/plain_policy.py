"""A policy of your own in ordinary Python: stop early where the labels agree. Does it pay?

python examples/plain_policy.py
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import venire as vn
from venire.scheduling import ItemView, LabelerView
from venire.testing import check_policy
from venire_research.regimes import compare


@dataclass(frozen=True)
class UntilSure(vn.PythonPolicy):
    """The heaviest item first, until the labels make a class this probable."""

    enough: float = 0.9

    def choose(self, labeler: LabelerView, items: Sequence[ItemView], slot: int) -> ItemView | None:
        open_items = [item for item in items if max(item.posterior) < self.enough]
        return max(open_items, key=lambda item: item.weight / (1 + item.pending), default=None)

    def leaves(self, item: ItemView, slot: int) -> bool:
        return max(item.posterior) >= self.enough


if __name__ == "__main__":
    check_policy(UntilSure())
    print("it keeps the rules: nobody twice, nobody over capacity, replays to the same state")
    policies: list[vn.Policy | str] = [UntilSure(), UntilSure(0.99), "greedy", "fixed-overlap:3"]
    for row in compare(policies, ["paper"], 2, certificate=False, quick=True):
        print(
            f"seed {row['seed']} {row['policy']:16} true utility {row['true_ratio']:.3f} of "
            f"Algorithm 1's, {row['accuracy']:.3f} right, {row['labels_per_item']:.2f} labels"
        )
