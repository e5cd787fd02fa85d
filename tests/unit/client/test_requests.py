"""What the clients send, and what they refuse to send."""

from __future__ import annotations

import json
from typing import Any

import pytest

from venire import Client
from venire.client import ServerError
from venire.client.calls import Calls
from venire.client.clients import Settings
from venire.client.wire import Answer
from venire.errors import InputError

URL = "http://127.0.0.1:8400"


@pytest.mark.parametrize("key", ["", " \n", "ключ", "vk_one vk_two", "vk_one\nvk_two", None])
def test_what_cannot_be_a_key_is_told_at_once_and_not_shown(key: Any) -> None:
    with pytest.raises(InputError, match="expected vk_") as caught:
        Client(URL, key)
    assert "one" not in str(caught.value)


def test_white_space_around_a_key_does_not_matter() -> None:
    assert Settings(URL, " vk_x\n", 1, 1).headers["authorization"] == "Bearer vk_x"


@pytest.mark.parametrize(
    "url", ["http://", "https://:8400", "http://host:port", "http://host:99999", "host:8400", ""]
)
def test_what_cannot_be_an_address_is_told_at_once(url: str) -> None:
    with pytest.raises(InputError, match="expected http"):
        Client(url, "vk_x")


@pytest.mark.parametrize(
    ("items", "told"),
    [
        ({"id": "a"}, "got one item"),
        (["a"], "got the item 'a'"),
        ([{"id": "a", "payload": float("nan")}], "item 'a' cannot be sent as JSON"),
        ([{"id": "a", "payload": {1, 2}}], "item 'a' cannot be sent as JSON"),
    ],
)
def test_items_that_are_none_are_told(items: Any, told: str) -> None:
    with pytest.raises(InputError, match=told):
        Calls().add_items("posts", items)


def test_labels_are_triples_or_mappings() -> None:
    row = {"item": "a", "labeler": "ann", "said": "ok"}
    call = Calls().add_labels("posts", [("a", "ann", "ok"), row])
    assert json.loads(call.body or b"") == [row, row]
    for wrong in (("a", "ann"), "a", None):
        with pytest.raises(InputError, match="got the label"):
            Calls().add_labels("posts", [wrong])  # type: ignore[list-item]


def test_a_refusal_that_will_not_change_is_not_tried_again() -> None:
    settings, error = Settings(URL, "vk_x", 1, 60), {"code": "c", "message": "m"}
    call = Calls().streams()
    final = Answer(502, {}, json.dumps({"error": {**error, "retryable": False}}).encode())
    with pytest.raises(Exception, match="502"):
        settings.attempts(call).answered(final)
    for body in (b"<html>bad gateway", json.dumps({"error": {"retryable": True}}).encode()):
        assert settings.attempts(call).answered(Answer(502, {}, body)) is not None


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_a_key_is_asked_for_again_only_if_none_can_have_been_made(status: int) -> None:
    settings, answer = Settings(URL, "vk_x", 1, 60), Answer(status, {}, b"")
    assert settings.attempts(Calls().keys()).answered(answer) is not None
    made = Calls().create_key("a screen", "viewer", None)
    if status == 429:
        assert settings.attempts(made).answered(answer) is not None
    else:
        with pytest.raises(ServerError):
            settings.attempts(made).answered(answer)
