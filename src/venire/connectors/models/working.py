"""A panel of functions and models as workers of a stream on a running server: `work --panel`."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from venire.batch.labelers import Caller, as_answer
from venire.connectors.crew import CrewReport, Hand, OpenClient, Ready, work_together
from venire.connectors.models.batching import Batching

__all__ = ["label_stream"]


async def label_stream(
    callers: Sequence[Caller],
    open_client: OpenClient,
    stream: str,
    ready: Ready = lambda stop: None,
    **options: Any,
) -> list[CrewReport]:
    """Let every labeler of a panel label for a stream (see `work_together`).

    A labeler works on as many items at once as it takes, if its capacity in the stream allows it.
    """

    def hands(settings: Mapping[str, Any]) -> list[Hand]:
        return [
            Hand(one.id, label_of(one), one.parallel * one.at_once, one.many is True)
            for one in callers
        ]

    reports = await work_together(hands, open_client, stream, ready, **options)
    for caller in callers:
        close = getattr(getattr(caller.call, "__self__", None), "close", None)
        if inspect.iscoroutinefunction(close):
            await close()
    return reports


def label_of(caller: Caller) -> Callable[[Any], Any]:
    """What a labeler says of one item, as text: the classes of a stream are text.

    >>> label_of(Caller("length", len))("Buy now!")
    '8'
    """
    if not caller.many and not inspect.iscoroutinefunction(caller.call):
        return lambda payload: _text(caller.call(payload))
    ask: Callable[[Any], Awaitable[Any]] = caller.call
    if caller.many:
        ask = Batching(caller.call, caller.at_once, caller.parallel)

    async def label(payload: Any) -> Any:
        return _text(await ask(payload))

    return label


def _text(said: Any) -> Any:
    """The label as text, None for no answer; of what is still to be waited for, later."""
    if inspect.isawaitable(said):
        return _later(said)
    label = as_answer(said, 0.0).label
    return None if label is None else str(label)


async def _later(said: Awaitable[Any]) -> Any:
    return _text(await said)
