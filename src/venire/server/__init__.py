"""The server: streams over a durable store and a real clock, over HTTP; no label is lost.

app, process  the HTTP application, and the process that runs it
edge          what every request goes through: limits, roles, sessions, errors, other servers
pages         the console and the labelling page
routes        the HTTP API
service       every operation that a client may use, without HTTP
operations    what these operations do, by noun
webhooks      deliveries to others; `keys`: who may come in
reports       what is told about a stream
runtime       all streams: loading, the ticker, health
stream        one stream in memory
store         the event log and the tables: SQLite or PostgreSQL
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from venire.tools.lazy import attach

if TYPE_CHECKING:
    from venire.server.app import create_app as create_app
    from venire.server.clock import Clock as Clock
    from venire.server.clock import ManualClock as ManualClock
    from venire.server.clock import SystemClock as SystemClock
    from venire.server.edge.settings import ServerSettings as ServerSettings
    from venire.server.messages import Added as Added
    from venire.server.messages import Answer as Answer
    from venire.server.messages import ItemIn as ItemIn
    from venire.server.messages import LabelIn as LabelIn
    from venire.server.messages import Lease as Lease
    from venire.server.messages import Nothing as Nothing
    from venire.server.messages import Outcome as Outcome
    from venire.server.service import Service as Service
    from venire.server.settings import Member as Member
    from venire.server.settings import ServiceSettings as ServiceSettings
    from venire.server.settings import StreamSettings as StreamSettings
else:
    __getattr__, __dir__ = attach(__name__)
