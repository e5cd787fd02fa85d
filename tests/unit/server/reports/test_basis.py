"""What the confidence of a verdict rests on."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.server.support import bench, running
from venire.server.messages import GoldIn
from venire.server.reports.trends import BasisChange, rests_on
from venire.server.store import CheckRow
from venire.server.stream.checks import Checks

DAY = 86_400.0
PANEL: tuple[dict[str, Any], ...] = (
    {"id": "ann", "competence": 0.9},
    {"id": "bob", "competence": 0.8},
    {"id": "judge", "trusted": True},
)


@pytest.fixture
def checks() -> Checks:
    """Four verdicts were drawn on the second to the fifth of January 1970; three were checked."""
    made = Checks()
    rows = [
        CheckRow(stream="posts", n=n, item=f"p{n}", at=n * DAY, share=0.5, verdict="ok")
        for n in range(1, 5)
    ]
    made.load(rows, {"p1": "ok", "p2": "spam", "p3": "ok"})
    return made


def test_the_last_check_and_what_it_found(checks: Checks) -> None:
    said = "by labels; checked on 3 audits, the last of 4 January 1970: 66.7 % of these verdicts"
    assert rests_on(checks, 9 * DAY, None, False) == f"{said} were right"
    checks.answer("p4", "ok")
    assert "4 audits, the last of 5 January" in rests_on(checks, 9 * DAY, None, False)
    assert "by labels, taught by 1 gold; not checked" in rests_on(Checks(gold=1), None, None, False)


def test_it_is_stale_once_something_changed_since(checks: Checks) -> None:
    change = BasisChange(6 * DAY, "the panel")
    stale = "; stale: the panel changed on 7 January 1970"
    assert rests_on(checks, 9 * DAY, change, False).endswith(stale)
    assert rests_on(checks, None, change, False).endswith(stale)
    assert "stale" not in rests_on(checks, 5 * DAY, change, False)  # it left before that
    assert "stale" not in rests_on(checks, 9 * DAY, BasisChange(2 * DAY, "the panel"), False)
    assert rests_on(checks, 9 * DAY, None, True).endswith(
        "; stale: the mix of verdicts has changed"
    )
    assert "stale" not in rests_on(checks, 2 * DAY, None, True)


@running
async def test_an_item_says_it() -> None:
    async with bench(panel=PANEL, audit_share=1.0) as b:

        async def leave(item: str) -> str | None:
            await b.add(item)
            await b.service.add_labels("posts", [(item, who, "spam") for who in ("ann", "bob")])
            await b.pass_time(10)
            return (await b.service.item("posts", item)).rests_on

        assert await leave("p1") == "by labels alone"
        await b.service.add_gold("posts", [GoldIn("p1", "spam")])
        assert (await b.service.item("posts", "p1")).rests_on == "said by somebody trusted"
        told = await leave("p2")
        assert told is not None
        assert "checked on 1 audit," in told
        assert "stale" not in told
        await b.pass_time(10)
        changes = {"guidelines": "Spam is what nobody asked for."}
        await b.service.change_stream("posts", changes, "me")
        now = await leave("p3")
        assert now is not None
        assert "; stale: the guidelines changed on" in now
        old = (await b.service.item("posts", "p2")).rests_on
        assert old is not None
        assert "stale" not in old
