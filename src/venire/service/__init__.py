"""Streams over a durable store: the scheduling engine driven by a real clock; no label is lost.

`Service` is the entry point for a web layer, a command line or a test. It knows nothing of HTTP.
"""

from venire.service.clock import Clock, ManualClock, SystemClock
from venire.service.messages import Added, Answer, ItemIn, LabelIn, Lease, Nothing, Outcome
from venire.service.service import Service
from venire.service.settings import Member, ServiceSettings, StreamSettings

__all__ = [
    "Added",
    "Answer",
    "Clock",
    "ItemIn",
    "LabelIn",
    "Lease",
    "ManualClock",
    "Member",
    "Nothing",
    "Outcome",
    "Service",
    "ServiceSettings",
    "StreamSettings",
    "SystemClock",
]
