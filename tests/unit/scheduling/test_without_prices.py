"""Where no label has a price, nothing is decided differently than before there were prices."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.without_prices import CERTIFIED, MADE, POLICIES, STORED, certified, digest, run_of

BEFORE: dict[str, Any] = json.loads(STORED.read_text())


@pytest.mark.parametrize("policy", POLICIES)
def test_runs_without_prices_are_what_they_were_to_the_bit(policy: str) -> None:
    now = {f"{regime} {policy}": digest(run_of(regime, policy)) for regime in MADE}
    assert now == {key: BEFORE[key] for key in now}


@pytest.mark.parametrize("regime", CERTIFIED)
def test_certificates_without_prices_are_what_they_were_to_the_bit(regime: str) -> None:
    assert certified(regime) == BEFORE[regime]
