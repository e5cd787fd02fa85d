"""What clients are told of what has left the store."""

from __future__ import annotations

from typing import Any

from tests.integration.server.harness import InProcess, in_process, until

ONE = "/v1/streams/posts"


def keep(shared: InProcess) -> None:
    """A snapshot, and then what the background task does once a minute."""
    runtime = shared.service.runtime

    async def now() -> None:
        await runtime.snapshot(await runtime.live_stream("posts"))
        await runtime.flush()
        await shared.service.keep_history("posts")

    assert shared.http.portal is not None
    shared.http.portal.call(now)


def code(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]


def test_what_is_gone_is_a_410() -> None:
    with in_process() as shared:
        shared.make_stream(policy="fixed-overlap:1", slot_seconds=0.05)
        refused = shared.call("PATCH", ONE, json={"retention": {"items": 0}})
        assert code(refused) == (422, "invalid")
        assert "--archive FOLDER" in refused.json()["error"]["message"]
        told = {"items": 0, "delete": True}
        assert shared.call("PATCH", ONE, json={"retention": told}).status_code == 200
        shared.add("a", "b")
        rows = [{"item": item, "labeler": "ann", "said": "ok"} for item in "ab"]
        assert shared.call("POST", f"{ONE}/labels", json=rows).status_code == 200
        until(lambda: len(shared.call("GET", f"{ONE}/exits").text.splitlines()) == 2)
        keep(shared)
        for path in ("items/a", "items/a/explain", "exits", "exits?after=1", "events?after=0"):
            assert code(shared.call("GET", f"{ONE}/{path}")) == (410, "archived"), path
        assert code(shared.call("DELETE", f"{ONE}/payloads/a")) == (410, "archived")
        assert shared.call("GET", f"{ONE}/exits?after=2").status_code == 200
        assert code(shared.call("GET", f"{ONE}/items/c")) == (404, "not_found")
        again = shared.call("POST", f"{ONE}/items", json=[{"id": "a", "payload": "text of a"}])
        assert again.json()["exists"] == 1
        shared.add("c")
        assert shared.call("GET", f"{ONE}/items/c").json()["status"] == "open"
