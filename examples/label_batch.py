"""1,000 posts, five judges of different prices and unknown quality: what does a budget buy?

Cheap judges are asked everywhere, dear ones where the others leave a doubt.

python examples/label_batch.py
"""

from __future__ import annotations

import random
from collections.abc import Callable

import venire as vn

SPAM = {f"post-{n}": n % 3 == 0 for n in range(1_000)}


def judge(name: str, skill: float) -> Callable[[str], str]:
    """A judge that is right with this probability, and says the same whenever it is asked."""

    def answer(post: str) -> str:
        right = random.Random(f"{name} {post}").random() < skill
        return "spam" if SPAM[post] == right else "ok"

    return answer


prices = {"tiny": 0.001, "small": 0.002, "medium": 0.005, "large": 0.01, "expert": 0.1}
skills = {"tiny": 0.72, "small": 0.76, "medium": 0.8, "large": 0.86, "expert": 0.97}
panel = [vn.Caller(name, judge(name, skills[name]), price) for name, price in prices.items()]
posts = {post: post for post in SPAM}  # a judge is shown the content of an item, here its name

for money in (6, 15, 30, 60):
    done = vn.label(posts, panel, vn.Budget(money=money))
    right = sum((v.label == "spam") == SPAM[post] for post, v in done.verdicts.items())
    asked = ", ".join(f"{one.id} {one.labels}" for one in done.labelers)
    print(f"{money:3} for {done.asked:,} labels: {right / 10:.1f} % right ({asked})")
