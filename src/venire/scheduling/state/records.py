"""The records of a desk: one row, touch, queue, labeler, group, edge or bid each.

Field names are part of the snapshot format.
"""

from __future__ import annotations

from typing import Final

import numpy as np

__all__ = ["CASE", "EDGE", "GROUP", "LABELER", "ROW", "SHELF", "STALL", "TOUCH"]

ROW: Final = np.dtype(
    [
        ("key", "f8"),  # order within a queue, largest first
        ("child", "i4"),
        ("sibling", "i4"),
        ("before", "i4"),
        ("shelf", "i4"),  # its queue; -1: none
        ("last", "i8"),  # slot of the latest label, or the arrival
        ("weight", "f8"),
        ("evidence", "f8"),
        ("head", "i4"),  # newest touch
        ("settled", "i4"),  # newest touch from before the current serving
        ("group", "i4"),
        ("labels", "i4"),  # labels given or in flight
        ("arrival", "i8"),
        ("due", "i8"),  # slot at whose end the row leaves
        ("later", "i4"),
        ("sooner", "i4"),
        ("pending", "i4"),  # labels in flight
        ("target", "i4"),  # labels wanted, for policies with a fixed overlap
        ("place", "i4"),  # of its stall; -1: none
        ("paid", "i8"),  # slot for which the delay counts as paid
        ("exit", "i8"),
        ("confidence", "f8"),
        ("floor", "f8"),  # the confidence that it must reach; 0: that of all rows
        ("verdict", "i2"),
        ("reason", "i1"),
        ("state", "i1"),
        ("stand", "i1"),  # where it stands with its limits (see item_limits.py)
    ],
    align=True,
)
TOUCH: Final = np.dtype(
    [
        ("gain", "f8"),
        ("slot", "i8"),
        ("row", "i4"),
        ("labeler", "i4"),
        ("next", "i4"),
        ("said", "i4"),
    ]
)
SHELF: Final = np.dtype(
    [
        ("rank", "i8"),
        ("root", "i4"),
        ("next", "i4"),
        ("prev", "i4"),
        ("group", "i4"),
        ("size", "i4"),
    ]
)
LABELER: Final = np.dtype(
    [
        ("evidence", "f8"),
        ("reach", "f8"),
        ("price", "f8"),  # what a label costs, in slots of delay
        ("mark", "i8"),
        ("capacity", "i4"),  # 0 while the labeler is away
        ("load", "i4"),  # in flight when the slot began, plus assigned since
        ("inflight", "i4"),
        ("pointer", "i4"),  # for the policy: its position, or how many rows it may label
        ("edge", "i4"),  # first edge
    ]
)
GROUP: Final = np.dtype([("shelf", "i4"), ("edge", "i4")])
EDGE: Final = np.dtype(
    [("group", "i4"), ("labeler", "i4"), ("of_labeler", "i4"), ("of_group", "i4")]
)
CASE: Final = np.dtype(
    [
        ("loss", "f8"),  # what is lost if the row leaves now
        ("left", "f8"),  # what is left to gain, which falls by exp(-evidence)
        ("log", "f8"),  # its logarithm
        ("cap", "f8"),  # evidence that it can still get
        ("rest", "f8"),  # what is lost if it leaves with all of that
        ("reserve", "f8"),  # the price of evidence up to which one more slot pays
        ("reserve_now", "f8"),  # the same in the current slot, which costs no delay
        ("least", "f8"),  # evidence of one label, on average
        ("rate", "f8"),  # what its labels would cost in money, for each unit of evidence
        ("limit", "f8"),  # the most that a label may cost it in money, for each unit of evidence
        ("want", "f8"),  # evidence wanted in the current slot
        ("stay", "i4"),  # the bin of `reserve`
        ("now", "i4"),  # the bin of `reserve_now`
        ("turn", "i4"),  # how early it is served in the current slot
        ("kind", "i4"),  # the two most probable classes, and whether there is no label yet
        ("scale", "f8"),  # what an error costs, where errors do not cost the same
        ("few", "i4"),  # 1: few labelers are eligible (see scarce_labelers.py)
    ]
)
STALL: Final = np.dtype(
    [
        ("value", "f8"),  # what is left to gain
        ("log", "f8"),  # its logarithm
        ("cap", "f8"),  # evidence that it can still get
        ("rate", "f8"),  # what this evidence costs in money, a unit
        ("most", "f8"),  # value * (1 - exp(-cap)), less that money
        ("charge", "f8"),  # in a bid: the delay that it pays for
        ("surplus", "f8"),  # in a bid: what it earns
        ("mass", "f8"),  # in a bid: how many rows it represents
        ("since", "i8"),  # slot from which it pays for the delay
        ("row", "i4"),
    ],
    align=True,
)
