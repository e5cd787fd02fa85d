"""Prices and daily budgets of a stream."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from tests.unit.server.support import bench, running, settings_of
from venire.model import Budget

PANEL = (
    {"id": "ann", "competence": 0.9, "price": 3.0},
    {"id": "bob", "competence": 0.8, "price": 0.5},
    {"id": "cec", "competence": 0.7},
)


@running
async def test_prices_are_told_the_engine_in_slots_and_shown_in_the_users_unit() -> None:
    async with bench(panel=PANEL, delay_cost=2.0) as b:
        assert [who.price for who in b.live.engine.panel] == [1.5, 0.25, 0.0]
        await b.add("p1", "p2")
        rows = [("p1", "ann", "spam"), ("p1", "bob", "ok"), ("p2", "bob", "ok")]
        await b.service.add_labels("posts", rows)
        shown = {v.id: (v.price, v.money) for v in await b.service.labelers("posts")}
        assert shown == {"ann": (3.0, 3.0), "bob": (0.5, 1.0), "cec": (0.0, 0.0)}
        assert (await b.service.insights("posts")).money == 4.0
        await b.service.change_stream("posts", {"delay_cost": 1.0}, "test")
        assert [who.price for who in b.live.engine.panel] == [3.0, 0.5, 0.0]
    async with bench(b.storage, b.clock) as again:
        assert (await again.service.insights("posts")).money == 4.0
        assert [who.price for who in again.live.engine.panel] == [3.0, 0.5, 0.0]


@running
async def test_a_daily_budget_is_kept_over_a_restart_and_changed() -> None:
    async with bench(panel=PANEL, delay_cost=2.0, budget={"money": 4.0}) as b:
        assert b.live.engine.budget == Budget(2.0, per_day=True, slots=8640)
        await b.add("p1", "p2")
        assert (await b.take("ann")).item == "p1"
        assert (await b.service.insights("posts")).today_left == {"money": 1.0}
        assert await b.why("ann") == "over_capacity"
        await b.service.add_labels("posts", [("p1", "ann", "ok")])
        assert await b.why("ann") == "budget_spent"  # its label would cost more than is left
        assert (await b.take("bob")).item == "p2"
    async with bench(b.storage, b.clock) as again:
        assert (await again.service.insights("posts")).today_left == {"money": 0.5}
        await again.service.change_stream("posts", {"budget": {"labels": 9}}, "test")
        assert (await again.service.insights("posts")).today_left == {"labels": 8.0}
        await again.service.change_stream("posts", {"budget": None}, "test")
        assert (await again.service.insights("posts")).today_left == {}
        assert again.live.engine.budget is None


def test_a_budget_without_a_limit_or_not_for_a_day_is_refused() -> None:
    with pytest.raises(ValidationError, match="money, labels or both"):
        settings_of(budget={})
    with pytest.raises(ValidationError, match="per_day"):
        settings_of(budget={"money": 5, "per_day": False})
