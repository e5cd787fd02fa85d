"""Where no label has a price, nothing is decided differently than before there were prices."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.without_prices import CERTIFIED, MADE, POLICIES, STORED, certified, run_of, totals

BEFORE: dict[str, Any] = json.loads(STORED.read_text())


@pytest.mark.parametrize("policy", POLICIES)
def test_runs_without_prices_are_what_they_were(policy: str) -> None:
    for regime in MADE:
        wanted = pytest.approx(BEFORE[f"{regime} {policy}"], rel=0.02, abs=10.0)
        assert totals(run_of(regime, policy)) == wanted, regime


@pytest.mark.parametrize("regime", CERTIFIED)
def test_certificates_without_prices_are_what_they_were(regime: str) -> None:
    assert certified(regime) == pytest.approx(BEFORE[regime], rel=0.01)
