"""Audits are blind: a reviewer sees neither verdict nor labels of an item that is due for one.

Whoever knows them tends to agree, and then the bound on the error rate proves nothing. Admins see
everything. What is hidden from one listing must not be told by another: a search passes it over in
the query, and sums over verdicts and labels are not shown while one of them is hidden.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from venire.model import Role
from venire.server.admin_messages import AlarmsView, AlarmView, TrendsView
from venire.server.edge.errors import RequestError
from venire.server.messages import ItemsPage, ItemSummary
from venire.server.reports.alarm_rules import OF_VERDICTS
from venire.server.store import ItemSearch

if TYPE_CHECKING:
    from venire.server.admin_messages import AgreementView, LabelerView, LessonsView
    from venire.server.edge.guard import Caller
    from venire.server.messages import (
        AuditsView,
        ExitView,
        Insights,
        ItemView,
        NoteView,
        RevisionView,
        StreamView,
    )
    from venire.server.service import Service


class Blind:
    """Hides what would influence whoever judges the items that are due.

    >>> from venire.server.messages import NoteView
    >>> note = NoteView(1, "a", "ann", "comment", "surely spam", 0.0, None)
    >>> Blind(frozenset({"a"})).notes([note]), len(Blind(frozenset()).notes([note]))
    ([], 1)
    """

    def __init__(self, due: frozenset[str], hides: bool = True) -> None:
        """With the items whose audits are due, if this hides anything."""
        self.due, self.hides = due, hides

    def item(self, view: ItemView) -> ItemView:
        """An item, without its verdict and its labels if it is due."""
        if self.due:  # it is said by sums, too
            view = replace(view, rests_on=None)
        if view.id not in self.due:
            return view
        left = None if view.exit is None else self._exit(view.exit)
        return replace(
            view, verdict=None, confidence=0.0, labels=(), posterior=None, exit=left,
            revisions=(), notes=(), routed=(), repeats=(),
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

    def search(self, search: ItemSearch) -> ItemSearch:
        """The search; one by what must not be shown passes over what is due."""
        told = replace(search, text=None, since=None, until=None, status=None)
        return replace(search, blind=self.hides and told != ItemSearch())

    def page(self, page: ItemsPage) -> ItemsPage:
        items = [self._summary(one) if one.id in self.due else one for one in page.items]
        return replace(page, items=tuple(items))

    # sums: the difference between two of them is what one more item added

    def insights(self, view: Insights) -> Insights:
        """The statistics, without those of verdicts while one of them is hidden."""
        if not (self.hides and view.audits_due):
            return view
        return replace(
            view, agreement=None, mean_confidence=None, verdicts={}, reasons={},
            alarms=view.alarms - view.alarms_of_verdicts, alarms_of_verdicts=0,
            revisions=0, accuracy_low=None, accuracy_high=None,
        )  # fmt: skip

    def trends(self, view: TrendsView) -> TrendsView:
        """The latest exits; none while one of them is hidden."""
        if not self.due:
            return view
        return TrendsView(view.stream, 0, None, None, None, None, 0.0, {}, {}, ())

    def alarms(self, view: AlarmsView) -> AlarmsView:
        """Alarms, but those about verdicts and what labelers say."""
        if not self.due:
            return view

        def kept(rows: tuple[AlarmView, ...]) -> tuple[AlarmView, ...]:
            return tuple(row for row in rows if row.rule not in OF_VERDICTS)

        return replace(view, active=kept(view.active), history=kept(view.history))

    def labelers(self, views: list[LabelerView]) -> list[LabelerView]:
        """Labelers, without what was learned of them by what is hidden."""
        if not self.due:
            return views
        return [
            replace(
                view, skill=None, skill_low=None, skill_high=None, drifting=False, clone_of=None,
                agreement=None, family=(),
            )
            for view in views
        ]  # fmt: skip

    def agreement(self, view: AgreementView) -> AgreementView:
        """How labelers agree with gold, which is not hidden; not with each other."""
        return replace(view, pairs=(), relations=(), itself=()) if self.due else view

    def relations(self, lines: tuple[str, ...]) -> tuple[str, ...]:
        """Who shares errors, by all labels."""
        return () if self.due else lines

    def lessons(self, view: LessonsView) -> LessonsView:
        """How the student learned from verdicts."""
        return replace(view, lessons=()) if self.due else view

    def audits(self, view: AuditsView) -> AuditsView:
        """Bounds, not by class: one that is passed over would count for its own."""
        return replace(view, classes={}) if self.hides and view.due else view

    def stream(self, view: StreamView) -> StreamView:
        """A stream, without how well its student agrees with the verdicts."""
        return replace(view, student=None) if self.hides else view

    def check_log(self) -> None:
        """Refuse what is computed from all labels."""
        if self.due:
            raise RequestError(
                409,
                "audit_due",
                f"{len(self.due):,} verdicts are due to be audited: until they are judged, "
                "reviewers see nothing that is computed from all labels",
                hint="judge them first, or use the key of an admin or a viewer",
            )

    def check(self, item: str) -> None:
        """Refuse to explain an item that is due."""
        if item in self.due:
            raise RequestError(
                409,
                "audit_due",
                f"item {item!r} was drawn to be audited: its story is shown once it is judged",
                hint="judge it first, or use the key of an admin",
            )

    @staticmethod
    def _exit(view: ExitView) -> ExitView:
        return replace(view, verdict=None, confidence=0.0, labels=0, reason=None, guaranteed=None)

    @staticmethod
    def _summary(one: ItemSummary) -> ItemSummary:
        return replace(one, verdict=None, confidence=None, labels=0, reason=None, revised=None)


async def blind_for(service: Service, who: Caller, stream: str) -> Blind:
    """What a caller must not see of a stream: who judges it is told nothing of what is due."""
    hides = who.role == Role.REVIEWER
    return Blind(await service.due(stream) if hides else frozenset(), hides)
