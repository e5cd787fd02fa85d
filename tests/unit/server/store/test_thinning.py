"""Snapshots ever further apart, and tallies that agree with counting."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from venire.server.store.sql.storage import SHARE, superfluous


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=200), st.integers(0, 5))
def test_gaps_are_short_where_they_can_be_and_few_stay(steps: list[int], every: int) -> None:
    kept, n, needed = [0], 0, set[int]()
    for place, step in enumerate(steps):
        n += step
        kept.append(n)
        if every and place % (20 * every) == 0:
            needed.add(n)
        gone = superfluous(kept, needed)
        assert not set(gone) & {0, n, *needed, *kept[-2:]}
        kept = [number for number in kept if number not in gone]
        assert superfluous(kept, needed) == []
    for older, middle, newer in zip(kept, kept[1:], kept[2:-1], strict=False):
        if middle not in needed:  # else it would have gone
            assert SHARE * (newer - older) > n - older


def test_twice_the_history_takes_a_few_snapshots_more() -> None:
    counts, kept = [], [0]
    for n in range(1, 1025):
        kept.append(n)
        gone = superfluous(kept)
        kept = [number for number in kept if number not in gone]
        counts.append(len(kept))
    assert counts[-1] < 32
    assert counts[1023] - counts[511] <= 6
