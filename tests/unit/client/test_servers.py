"""Which of several servers is asked: against a plain account of what a client should do."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from venire import AsyncClient, Client
from venire.client import ServerError, Unreachable
from venire.client.calls import Calls
from venire.client.clients import Attempts, Servers, Settings
from venire.client.wire import Answer, Call
from venire.errors import InputError
from venire.tools.http import Backoff

A, B, C = "http://a:8400", "http://b:8400", "http://c:8400"
GIVEN = [A, B, C]

#: What a server may do with a request, and whether the request may then be sent again: always,
#: only if it is idempotent, or never.
WAYS = {
    "ok": "never",
    "missing": "never",
    "refused": "always",
    "cut off": "idempotent",
    "standby": "always",
    "starting": "always",
    "loading": "always",
    "elsewhere": "always",
    "owner_lost": "idempotent",
    "store_down": "idempotent",
}


def answer(way: str, owner: str | None = None) -> Answer:
    headers = {} if owner is None else {"venire-owner": owner}
    if way == "ok":
        return Answer(200, headers, b"{}")
    status = 404 if way == "missing" else 503
    error = {"code": way, "message": way, "hint": "", "retryable": status == 503}
    return Answer(status, headers, json.dumps({"error": error}).encode())


def run(servers: Servers, call: Call[Any], ways: dict[str, str], rounds: int) -> tuple[Any, Any]:
    """Who is asked, and what comes out of it, where each server always does the same."""
    limit = 0.1 * (2 ** (rounds - 1) - 1)  # the waits between so many rounds: 0.1 + 0.2 + ...
    attempts = Attempts(servers, call, Backoff(limit + 1e-9, draw=lambda: 1.0))
    asked: list[str] = []
    while True:
        url = attempts.url
        asked.append(url)
        try:
            if ways[url] in ("refused", "cut off"):
                attempts.failed(OSError(ways[url]), unsent=ways[url] == "refused")
            elif attempts.answered(answer(ways[url])) is None:
                return asked, "ok"
        except (ServerError, Unreachable) as error:
            return asked, error


def expected(order: list[str], ways: dict[str, str], idempotent: bool, rounds: int) -> list[str]:
    """Who should be asked, plainly: one after the other, round after round, until it is over."""
    asked = []
    for _ in range(rounds):
        for url in order:
            asked.append(url)
            again = WAYS[ways[url]]
            if again == "never" or (again == "idempotent" and not idempotent):
                return asked
    return asked


@given(
    ways=st.fixed_dictionaries({url: st.sampled_from(sorted(WAYS)) for url in GIVEN}),
    idempotent=st.booleans(),
    rounds=st.integers(1, 4),
    owner=st.sampled_from([None, *GIVEN]),
    latest=st.sampled_from(GIVEN),
)
def test_servers_are_asked_as_the_plain_account_says(
    ways: dict[str, str], idempotent: bool, rounds: int, owner: str | None, latest: str
) -> None:
    servers = Servers(GIVEN)
    servers.heard("/v1/streams/posts", latest, {} if owner is None else {"venire-owner": owner})
    call = replace(Calls().add_webhook("posts", "http://x"), idempotent=idempotent)
    k = GIVEN.index(latest)
    order = sorted(GIVEN, key=lambda url: (url != owner, (GIVEN.index(url) - k) % 3))
    # the owner is no longer believed to be one after it failed, so later rounds begin elsewhere
    later = sorted(GIVEN, key=lambda url: (GIVEN.index(url) - k) % 3)
    first = expected(order, ways, idempotent, 1)
    over = len(first) < 3 or expected([first[-1]], ways, idempotent, 2) == [first[-1]]
    want = first if over else first + expected(later, ways, idempotent, rounds - 1)
    asked, end = run(servers, call, ways, rounds)
    assert asked == want
    assert (end == "ok") == (ways[asked[-1]] == "ok")
    if isinstance(end, Unreachable) and idempotent:
        assert all(url in str(end) for url in GIVEN), "all that were tried are named"


def test_who_is_not_among_the_given_gets_no_key() -> None:
    servers = Servers([A, B])
    for other in (
        C,
        "http://a:8401",
        "https://a:8400",
        "http://a:8400.evil.org",
        "x",
        "http://[::",
    ):
        servers.heard("/v1/streams/posts", A, {"venire-owner": other})
        assert servers.order("/v1/streams/posts/next") == [A, B]
    servers.heard("/v1/streams/posts", A, {"venire-owner": "HTTP://B:8400/"})
    assert servers.order("/v1/streams/posts/next")[0] == B


def test_an_owner_is_known_by_the_name_and_by_the_end_of_a_token() -> None:
    servers = Servers([A, B])
    servers.heard("/v1/assignments/one.dETW42vSlD8/label", A, {"venire-owner": B})
    assert servers.order("/v1/assignments/two.dETW42vSlD8/label")[0] == B
    assert servers.order("/v1/assignments/two.dETW42vSlD9/label")[0] == A
    assert servers.order("/v1/assignments/two/label")[0] == A
    servers.failed("/v1/assignments/x.dETW42vSlD8/label", B)
    assert servers.order("/v1/assignments/two.dETW42vSlD8/label")[0] == A


def test_an_error_names_all_that_were_tried() -> None:
    call = Calls().streams()
    _, error = run(Servers([A, B]), call, {A: "refused", B: "cut off"}, 1)
    assert isinstance(error, Unreachable)
    assert str(error) == f"none of 2 servers can be reached: {A}: refused; {B}: cut off"
    _, error = run(Servers([A, B]), call, {A: "refused", B: "standby"}, 1)
    assert isinstance(error, ServerError)
    assert (error.status, error.code) == (503, "standby")
    assert f"tried {A}: refused; {B}: 503 standby" in str(error)
    _, error = run(Servers(A), call, {A: "refused"}, 1)
    assert str(error) == f"{A} cannot be reached: refused"


def test_too_many_requests_are_not_sent_elsewhere() -> None:
    attempts = Attempts(Servers([A, B]), Calls().streams(), Backoff(60))
    assert attempts.answered(Answer(429, {"retry-after": "3"}, b"")) == 3.0
    assert attempts.url == A


def test_addresses_are_a_text_or_a_list() -> None:
    for url in (f"{A},{B}", f" {A}/ , {B} ", [A, B], (A, f"{B}/"), f"{A},{B},{A}"):
        assert Servers(url).urls == [A, B]
    for kind in (Client, AsyncClient):
        kind(f"{A},{B}", "vk_x")
        kind([A, B], "vk_x")
    for wrong in ("", [], f"{A},", f"{A},b:8400", [A, None], [A, ""]):
        with pytest.raises(InputError, match="expected http"):
            Servers(wrong)  # type: ignore[arg-type]


def test_where_there_is_another_server_connecting_does_not_take_long() -> None:
    call = Calls().next("posts", "ann", 20.0)
    one, two = Settings(A, "vk_x", 30, 60), Settings([A, B], "vk_x", 30, 60)
    assert one.request(call, A)["timeout"].connect == one.request(call, A)["timeout"].read == 50
    assert two.request(call, B)["timeout"].as_dict() == {
        "connect": 5.0,
        "read": 50.0,
        "write": 50.0,
        "pool": 50.0,
    }
    assert two.request(call, B)["url"] == f"{B}/v1/streams/posts/next"
