"""The report on the panel of a stream: bounded, off the loop, and the same as the library's."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.server.support import Bench, bench, running
from venire import panel_report
from venire.errors import InputError, NotFound, StateError
from venire.server.reports import replays


async def labelled(b: Bench, items: int) -> list[tuple[str, str, str]]:
    """Items with a label of everyone; what they said."""
    rng = np.random.default_rng(0)
    await b.add(*(f"i{n}" for n in range(items)))
    rows = []
    for n in range(items):
        for name, skill in (("ann", 0.9), ("bob", 0.8), ("cec", 0.7)):
            right = rng.random() < skill
            rows.append((f"i{n}", name, "ok" if right == (n % 2 == 0) else "spam"))
    await b.service.add_labels("posts", rows)
    return rows


@running
async def test_it_is_the_report_of_the_library() -> None:
    async with bench() as b:
        rows = await labelled(b, 40)
        view = await b.service.panel("posts", 0.6)
        expected = panel_report(rows, want=0.6)
        assert view.accuracy.value == pytest.approx(expected.accuracy.value)
        assert sorted(view.can_go) == sorted(map(str, expected.can_go))
        found, wanted = ({m.labeler: m for m in each.members} for each in (view, expected))
        for name, member in wanted.items():
            assert found[name].without.value == pytest.approx(member.without.value)
            assert found[name].skill == pytest.approx(member.skill)
        assert view.cost == 120


@running
async def test_few_labels_and_unknown_streams_are_refused() -> None:
    async with bench() as b:
        with pytest.raises(StateError, match="has 0 labels, expected 10 or more"):
            await b.service.panel("posts")
        with pytest.raises(NotFound):
            await b.service.panel("nothing")
        await labelled(b, 10)
        with pytest.raises(InputError, match="got a wanted accuracy of 3"):
            await b.service.panel("posts", 3)


@running
async def test_a_report_that_takes_too_long_is_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replays, "MAX_SECONDS", -1.0)
    async with bench() as b:
        await labelled(b, 10)
        with pytest.raises(StateError, match="use venire panel, which has no limit"):
            await b.service.panel("posts")
