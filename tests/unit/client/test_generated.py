"""The synchronous client is what the asynchronous one gives, and has the same methods."""

from __future__ import annotations

import inspect

import pytest

from tools.sync_client import generated, home_of, main
from venire import AsyncClient, Client


def test_the_synchronous_client_is_the_generated_one() -> None:
    assert home_of("Client").read_text() == generated(), "run scripts/generate"


def test_a_change_by_hand_is_found(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tools.sync_client.generated", lambda: "something else")
    assert main(["--check"]) == 1
    assert "run scripts/generate" in capsys.readouterr().err


def test_both_clients_have_the_same_methods_with_the_same_parameters() -> None:
    def methods(kind: type) -> dict[str, list[str]]:
        return {
            name: list(inspect.signature(method).parameters)
            for name, method in inspect.getmembers(kind, inspect.isfunction)
            if not name.startswith("__")
        }

    assert methods(AsyncClient) == methods(Client)
    assert not any(
        inspect.iscoroutinefunction(method) or inspect.isasyncgenfunction(method)
        for _, method in inspect.getmembers(Client)
    )
