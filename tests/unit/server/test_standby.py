"""What a server does while another one has the store."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from venire.errors import StoreInUse
from venire.server import ServerSettings
from venire.server import process as server


@pytest.mark.parametrize("shared", [False, True])
def test_who_waits_for_a_store_compiles_before_it_is_free(
    shared: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []

    def opened(*args: Any, **more: Any) -> str:
        if "prepared" not in done:
            raise StoreInUse("another server has it")
        done.append("opened")
        return "the store"

    monkeypatch.setattr(server, "open_storage", opened)
    monkeypatch.setattr(server, "prepare", lambda: done.append("prepared"))

    async def wait() -> Any:
        listening = asyncio.Event()
        listening.set()
        there: Any = SimpleNamespace(
            listening=listening, addresses=lambda: ["http://a:1"], own_address=lambda: "http://a:1"
        )
        settings = ServerSettings(standby=not shared, shared=shared)
        return await server._when_free(settings, there, lambda line: None)

    assert asyncio.run(wait()) == "the store"
    assert done == ["prepared", "opened"]
