"""What is compiled, or loaded, before a stream is served: no request waits for it on the loop."""

from __future__ import annotations

from typing import Any

import pytest

from venire.engine import bounded_queue
from venire.server import StreamSettings
from venire.server.stream.engine_setup import warm_up

KERNELS = ("next_short", "note_rows", "note_stand", "survey")


@pytest.mark.parametrize("policy", ["realised", "greedy", "fixed-overlap:2"])
def test_the_kernels_of_bounds_are_warm_whatever_the_stream(
    policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first request that needed one waited half a second, and everyone else with it."""
    called = set[str]()

    def noting(name: str, kernel: Any) -> Any:
        def call(*args: Any) -> Any:
            called.add(name)
            return kernel(*args)

        return call

    for name in KERNELS:
        monkeypatch.setattr(bounded_queue, name, noting(name, getattr(bounded_queue, name)))
    warm_up(StreamSettings(classes=("spam", "ok"), policy=policy))
    assert called == set(KERNELS)
