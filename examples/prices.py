"""A cheap weak judge and a dear strong one: the dear one only where it pays.

python examples/prices.py
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import venire as vn

PRICES = {0.7: 0.02, 0.72: 0.02, 0.75: 0.02, 0.95: 2.0}


def world(competences: list[float], priced: bool) -> vn.World:
    """Four items a slot that are worth 20 each; every judge has time for all of them."""
    made = vn.World.synthetic(1, competences, vn.Poisson(4), weights=(20,), capacity=50)
    panel = [replace(who, price=PRICES[who.competence or 0.5] * priced) for who in made.panel]
    return replace(made, panel=tuple(panel))


print("                 right  money  dear labels  utility an item")
for name, judges, priced in [
    ("with prices", list(PRICES), True),
    ("without prices", list(PRICES), False),
    ("cheap ones only", [0.7, 0.72, 0.75], True),
    ("dear one only", [0.95], True),
]:
    run = vn.simulate(world(judges, priced), vn.Realised(), slots=500)
    n, given = len(run.rows), np.array(judges)[run.touches["labeler"]]
    money = sum(PRICES[p] * (given == p).sum() for p in judges)
    earned = (run.true_utility or 0.0) - (0.0 if priced else money)
    dear = (given == 0.95).sum() / n
    print(f"{name:15}  {run.accuracy:.3f}  {money / n:5.2f}  {dear:11.2f}  {earned / n:15.2f}")
