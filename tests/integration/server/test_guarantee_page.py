"""What a stream guarantees, on its page and on that of an item."""

from __future__ import annotations

from tests.integration.server.harness import in_process, until
from venire.server import ManualClock

API = "/v1/streams/posts"
PANEL = [
    {"id": "ann", "competence": 0.9},
    {"id": "bob", "competence": 0.8},
    {"id": "judge", "trusted": True},
]


def test_the_page_shows_what_is_guaranteed() -> None:
    clock = ManualClock()
    with in_process(clock) as served:
        served.make_stream(
            classes=["spam", "ok"], panel=PANEL, policy="fixed-overlap:2", slot_seconds=1.0,
            audit_share=1.0, guarantee=0.9,
        )  # fmt: skip
        items = [f"i{k}" for k in range(5)]
        for item in items:
            served.add(item)
        rows = [{"item": i, "labeler": m, "said": "ok"} for i in items for m in ("ann", "bob")]
        assert served.call("POST", f"{API}/labels", json=rows).status_code == 200
        clock.advance(2.0)
        until(lambda: len(served.call("GET", f"{API}/exits").text.splitlines()) == 5)
        page = served.call("GET", "/streams/posts?part=rates", headers={"accept": "text/html"})
        assert "No verdict is guaranteed yet" in page.text
        gold = [{"item": item, "label": "ok"} for item in items]
        assert served.call("POST", f"{API}/gold", json=gold).status_code == 200
        page = served.call("GET", "/streams/posts?part=rates", headers={"accept": "text/html"})
        assert "5 of 5 verdicts (100 %) are guaranteed" in " ".join(page.text.split())
        assert "more audits" in page.text
        whole = served.call("GET", "/streams/posts", headers={"accept": "text/html"})
        assert "and what is guaranteed" in whole.text
        item = served.call("GET", "/streams/posts/items/i0", headers={"accept": "text/html"})
        assert '<dd data-figure="guaranteed">yes</dd>' in item.text
        told = served.call("GET", f"{API}/rates").json()["guarantee"]
        assert (told["marked"], told["coverage"], len(told["curve"])) == (5, 1.0, 5)
