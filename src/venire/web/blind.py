"""Audits are blind: a reviewer sees neither verdict nor labels of an item that is due for one.

Whoever knows them tends to agree, and then the bound on the error rate proves nothing. Admins see
everything.
"""

from __future__ import annotations

from dataclasses import replace

from venire.model import Role
from venire.service.console_messages import ItemsPage, ItemSummary
from venire.service.messages import ExitView, ItemView, NoteView, RevisionView
from venire.service.service import Service
from venire.storage import ItemSearch
from venire.web.access import Caller
from venire.web.errors import RequestError

__all__ = ["Blind", "blind_for"]


class Blind:
    """Hides what would influence whoever judges the items that are due.

    >>> note = NoteView(1, "a", "ann", "comment", "surely spam", 0.0, None)
    >>> Blind(frozenset({"a"})).notes([note]), len(Blind(frozenset()).notes([note]))
    ([], 1)
    """

    def __init__(self, due: frozenset[str]) -> None:
        """With the items whose audits are due."""
        self.due = due

    def item(self, view: ItemView) -> ItemView:
        """An item, without its verdict and its labels if it is due."""
        if view.id not in self.due:
            return view
        left = None if view.exit is None else self._exit(view.exit)
        return replace(
            view, verdict=None, confidence=0.0, labels=(), posterior=None, exit=left,
            revisions=(), notes=(),
        )  # fmt: skip

    def exits(self, views: list[ExitView]) -> list[ExitView]:
        """Exits, without the verdicts that are due."""
        return [self._exit(view) if view.item in self.due else view for view in views]

    def revisions(self, views: list[RevisionView]) -> list[RevisionView]:
        """Revisions, but those of items that are due."""
        return [view for view in views if view.item not in self.due]

    def notes(self, views: list[NoteView]) -> list[NoteView]:
        """Notes, but those on items that are due."""
        return [view for view in views if view.item not in self.due]

    def page(self, page: ItemsPage, search: ItemSearch) -> ItemsPage:
        """A page of items; one that is due is not found by what it must not show."""
        told = replace(search, text=None, since=None, until=None, status=None)
        by_verdict = told != ItemSearch()
        items = [
            self._summary(one) if one.id in self.due else one
            for one in page.items
            if not (by_verdict and one.id in self.due)
        ]
        return replace(page, items=tuple(items))

    def check(self, item: str) -> None:
        """Refuse to explain an item that is due."""
        if item in self.due:
            raise RequestError(
                409,
                "audit_due",
                f"item {item!r} was drawn to be audited: its story is told when it was judged",
                hint="judge it first, or use the key of an admin",
            )

    @staticmethod
    def _exit(view: ExitView) -> ExitView:
        return replace(view, verdict=None, confidence=0.0, labels=0)

    @staticmethod
    def _summary(one: ItemSummary) -> ItemSummary:
        return replace(one, verdict=None, confidence=None, labels=0, reason=None, revised=None)


async def blind_for(service: Service, who: Caller, stream: str) -> Blind:
    """What a caller must not see of a stream."""
    return Blind(await service.due(stream) if who.role == Role.REVIEWER else frozenset())
