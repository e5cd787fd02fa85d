"""Which verdicts are audited: drawn by a seed, so that nobody chooses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping
from typing import Any, NamedTuple

import numpy as np

from venire.errors import InputError

__all__ = ["Drawn", "draw_audit"]


class Drawn(NamedTuple):
    """A task to be audited; `extra` if it was drawn for its class, not at random from all."""

    task: Any
    extra: bool = False


def draw_audit(
    verdicts: Mapping[Any, Hashable], share: float, seed: int, at_least: int = 0
) -> list[Drawn]:
    """Draw a share of the verdicts at random, and more of the classes of which these are few.

    All tasks are shuffled by the seed. The first of them are the sample; those of a rare class
    that come after it are extra, until there are `at_least` of that class. Both are to be audited
    in the order of the list: who stops early has still audited a random part. With a larger share
    and the same seed the sample goes on where it ended.

    Parameters
    ----------
    verdicts
        The verdict on each task, such as `labels_` of an estimator. The order does not matter.
    share
        Of the verdicts: above 0, at most 1; one is drawn in any case.
    seed
        Another seed, another draw. Keep it from those who label, as long as they label.
    at_least
        So many audits of every class of verdicts, or all that there are.

    Examples
    --------
    >>> verdicts = {f"post-{i}": "spam" if i % 10 == 0 else "ok" for i in range(100)}
    >>> [task for task, _ in draw_audit(verdicts, 0.04, seed=1)]
    ['post-52', 'post-16', 'post-23', 'post-82']
    >>> [task for task, extra in draw_audit(verdicts, 0.04, seed=1, at_least=2) if extra]
    ['post-80', 'post-70']
    """
    if not 0 < share <= 1:
        raise InputError(f"got the share {share:g}, expected more than 0, at most 1: 0.05 for 5 %")
    if at_least < 0 or seed < 0:
        raise InputError(f"got at_least {at_least} and seed {seed}, expected numbers from 0")
    if not verdicts:
        raise InputError("there are no verdicts, expected at least one to draw from")
    tasks = sorted(verdicts, key=str)
    sampled = max(1, round(share * len(tasks)))
    drawn: list[Drawn] = []
    counts: Counter[Hashable] = Counter()
    for place, i in enumerate(np.random.default_rng(seed).permutation(len(tasks)).tolist()):
        label = verdicts[tasks[i]]
        if place < sampled or counts[label] < at_least:
            counts[label] += 1
            drawn.append(Drawn(tasks[i], extra=place >= sampled))
    return drawn
