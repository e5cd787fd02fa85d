"""`venire warm-up` names all that it compiles, and does it."""

from __future__ import annotations

import json

import pytest

from venire.cli import main
from venire.cli import serve as warm_up
from venire.estimators.base import methods
from venire.scheduling import Policy
from venire.scheduling.by_name import exported


def test_every_policy_and_method_is_compiled() -> None:
    names = [name for name, _ in warm_up._everything()]
    for policy in exported(Policy):
        assert {f"policy {policy}, simulated", f"policy {policy}, in a scheduler"} <= set(names)
    assert {f"method {name}" for name in methods()} < set(names)
    assert len(names) == len(set(names))


def test_progress_is_told_and_what_fails_is_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(warm_up, "_served", lambda: [("one", lambda: None), ("two", lambda: None)])
    assert main(["warm-up", "--server", "--jobs", "1"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("Compiled, in ")
    assert err.splitlines() == ["1 of 2: one", "2 of 2: two"]
    assert main(["warm-up", "--server", "--jobs", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["compiled"] == ["one", "two"]
    assert main(["warm-up", "--jobs", "0"]) == 2


@pytest.mark.parametrize("name", ["method auto", "batches", "policy greedy, in a scheduler"])
def test_what_it_runs_runs(name: str) -> None:
    dict(warm_up._everything())[name]()
