"""A kind of event is in the log, comes back from it, is replayed, and is shown to readers."""

from __future__ import annotations

import venire as vn
from venire.engine import Scheduler
from venire.events import KINDS
from venire.server.reports.event_json import event_body
from venire.server.store import decode, encode


def scheduler() -> Scheduler:
    panel = [vn.Labeler("ann", 0.8), vn.Labeler("bob", 0.7)]
    return Scheduler(panel, ("ok", "spam"))


def main() -> None:
    one = scheduler()
    one.remark("the guidelines changed")  # type: ignore[attr-defined]
    log = one.drain()
    rows = encode("posts", 0, 0.0, log)
    assert rows[-1].kind == "remarked" in KINDS
    assert decode(rows) == log
    assert event_body(rows[-1]) == {"text": "the guidelines changed"}

    other = scheduler()
    other.follow(log)
    assert other.drain() == log


if __name__ == "__main__":
    main()
