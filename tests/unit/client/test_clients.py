"""Both clients have a method for every operation, with the signature of its call."""

from __future__ import annotations

import inspect

import pytest

from tools.operations import PAGE, WITHOUT, page
from venire import AsyncClient, Client
from venire.client.calls import Calls
from venire.operations import OPERATIONS

METHODS = sorted(set(OPERATIONS) - WITHOUT)


def public(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


def test_every_operation_is_a_method_and_every_method_an_operation() -> None:
    more = {"close", "follow_exits", "follow_revisions"}
    assert public(Client) == public(AsyncClient) == set(METHODS) | more


@pytest.mark.parametrize("name", METHODS)
def test_a_method_is_documented_as_its_call(name: str) -> None:
    call, first = getattr(Calls(), name), getattr(Client, name)
    second = getattr(AsyncClient, name)
    assert first.__name__ == second.__name__ == name
    assert first.__doc__ == second.__doc__ == call.__doc__
    parameters = list(inspect.signature(call).parameters.values())
    for method in (first, second):
        assert list(inspect.signature(method).parameters.values())[1:] == parameters
    assert inspect.iscoroutinefunction(second)


@pytest.mark.parametrize("name", METHODS)
def test_a_call_sends_what_its_entry_says(name: str) -> None:
    """With something for every parameter that has no default, the path has no gap."""
    given = {
        one.name: _example(one.annotation)
        for one in inspect.signature(getattr(Calls(), name)).parameters.values()
        if one.default is one.empty and one.kind is not one.VAR_KEYWORD
    }
    call, entry = getattr(Calls(), name)(**given), OPERATIONS[name]
    assert (call.method, call.idempotent) == (entry.method, entry.idempotent)
    assert "{" not in call.path
    assert call.path.count("/") == entry.path.count("/")


def test_the_page_of_operations_is_what_their_entries_give() -> None:
    assert PAGE.read_text() == page(), "run python -m tools.operations"


def _example(annotation: str) -> object:
    if "Iterable" in annotation:
        return []
    return {"int": 0, "bytes": b"id\na\n"}.get(annotation, "x")
