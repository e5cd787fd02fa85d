"""Messages for people: `{"text": ...}`, which Slack, Mattermost and others show as they are.

A webhook of this format is told of alarms and of revised verdicts, not of every item that leaves.
Its format is kept in the fragment of its address, which is never sent to anybody.
"""

from __future__ import annotations

from typing import Final, Literal

from venire.server.console_messages import AlarmView
from venire.server.messages import ExitView, RevisionView

Format = Literal["json", "text"]

_TEXT: Final = "#format=text"


def kept_as(url: str, format: Format) -> str:
    """The address of a webhook as the store keeps it.

    >>> kept_as("https://hooks.slack.com/x#y", "text")
    'https://hooks.slack.com/x#format=text'
    """
    bare = url.partition("#")[0]
    return f"{bare}{_TEXT}" if format == "text" else bare


def format_of(kept: str) -> Format:
    """The format of the messages to an address."""
    return "text" if kept.endswith(_TEXT) else "json"


def address_of(kept: str) -> str:
    """The address without its format."""
    return kept.removesuffix(_TEXT)


def text_of(stream: str, about: ExitView | RevisionView | AlarmView | None) -> str:
    """What to tell people; without a subject it is a test.

    >>> alarm = AlarmView(1, 0.0, "queue", None, False, 0.0, 500.0, "0 open items, back below 500")
    >>> text_of("posts", alarm)
    'posts: the alarm queue is over: 0 open items, back below 500'
    """
    if about is None:
        return f"{stream}: this is a test of the webhook, and it works"
    if isinstance(about, AlarmView):
        rule = about.rule.replace("_", " ")
        of = f"alarm {rule}" if about.raised else f"the alarm {rule} is over"
        return f"{stream}: {of}: {about.message}"
    if isinstance(about, RevisionView):
        return f"{stream}: the verdict on {about.item} is now {about.verdict}, not {about.before}"
    return f"{stream}: {about.item} left as {about.verdict}"
