"""Leasing work to labelers who ask for it, and ending leases.

A lease and the engine's assignment are made in one step and one transaction. Work is only leased
on request; a labeler who gets none learns why.
"""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass

from venire.errors import InputError, NotFound, StateError, TooMuch
from venire.model import Assignment, Labeler, LeaseStatus, NoWork, StreamStatus
from venire.service.messages import Lease
from venire.service.stream.change_batch import Batch
from venire.service.stream.leases import HeldLease
from venire.service.stream.live_stream import LiveStream, Moment
from venire.service.tokens import hashed, new_token
from venire.storage import LeaseEnd

__all__ = ["Grant", "give_back", "grant", "rename", "seat", "view", "why_nothing"]


@dataclass(frozen=True, slots=True)
class Grant:
    """A new lease, with the only copy of its token."""

    token: str
    held: HeldLease
    slot: int
    gain: float


def seat(live: LiveStream, labeler: str, batch: Batch, moment: Moment) -> None:
    """Seat the labeler on the panel, if it is allowed."""
    if labeler not in live.labelers.seated and not live.settings.open_panel:
        raise NotFound("labeler", labeler, "the panel of this stream is closed to newcomers")
    if labeler in live.labelers.seated:
        live.labelers.touch(labeler, moment.now)
        return
    if labeler not in live.labelers and len(live.labelers) >= live.max_labelers:
        raise TooMuch(
            f"stream {live.name!r} has {len(live.labelers):,} labelers, the limit: name "
            f"{labeler!r} on the panel, or raise max_labelers",
            retry_after=60,
        )
    live.labelers.touch(labeler, moment.now)
    with contextlib.suppress(StateError):  # it joined before the last restart
        try:
            live.engine.join(Labeler(labeler))
        except InputError:
            raise InputError(
                f"labeler {labeler!r} is not on the panel, and this stream does not learn the "
                "competences of newcomers: add it to the panel with a competence, or set learning "
                "to while-serving"
            ) from None
    live.labelers.seated.add(labeler)
    live.collect(batch, moment)


def grant(
    live: LiveStream, asking: Mapping[str, str | None], batch: Batch, moment: Moment
) -> dict[str, Grant]:
    """Lease at most one item to each labeler in `asking` (by key id); they must be seated."""
    left = live.budget_left
    if live.status == StreamStatus.PAUSED or not live.open or left == 0:
        return {}
    free = [
        name for name in asking if live.leases.holds(name) < live.labelers.record(name).capacity
    ]
    if left is not None:
        free = free[:left]
    given = {}
    for work in live.engine.assign(asked=free) if free else ():
        given[work.labeler] = _lease(live, work, asking[work.labeler], batch, moment)
    live.collect(batch, moment)
    return given


def _lease(
    live: LiveStream, work: Assignment, key: str | None, batch: Batch, moment: Moment
) -> Grant:
    token, s = new_token(), live.settings
    ttl = live.lead_times.ttl(work.labeler, s.lease_floor_seconds, s.lease_ceiling_seconds)
    held = HeldLease(
        hashed(token), work.item, work.labeler, moment.wall, moment.now, ttl, moment.now + ttl
    )
    live.leases.add(held)
    live.open[work.item].holders |= {work.labeler}
    batch.leases.append(held.row(live.name, key))
    return Grant(token, held, work.slot, work.gain * s.delay_cost)


def why_nothing(live: LiveStream, labeler: str) -> NoWork:
    """Why a labeler got no work."""
    if live.status == StreamStatus.PAUSED:
        return NoWork.PAUSED
    if not live.open:
        return NoWork.CLOSED if live.status == StreamStatus.CLOSED else NoWork.EMPTY
    if live.budget_left == 0:
        return NoWork.BUDGET_SPENT
    record = live.labelers.get(labeler)
    if record is not None and live.leases.holds(labeler) >= record.capacity:
        return NoWork.OVER_CAPACITY
    for lease in live.leases:
        entry = live.open.get(lease.item)
        if entry is not None and labeler not in entry.labels and entry.may(labeler):
            return NoWork.ALL_LEASED
    return NoWork.NONE_FOR_YOU


def give_back(
    live: LiveStream, lease: HeldLease, status: LeaseStatus, bar: bool, batch: Batch, moment: Moment
) -> None:
    """End a lease without a label."""
    live.leases.pop(lease)
    entry = live.open.get(lease.item)
    if entry is not None:
        entry.holders -= {lease.labeler}
        if bar:
            entry.barred |= {lease.labeler}
        live.engine.release(lease.item, lease.labeler, bar)
    live.lapsed.put(lease.token_hash, (live.name, lease))
    batch.ends.append(LeaseEnd(lease.token_hash, status, moment.wall, key=batch.key))
    live.collect(batch, moment)
    live.check_budget(batch, moment)


def rename(live: LiveStream, lease: HeldLease, batch: Batch, moment: Moment) -> str:
    """Continue a lease under a new token, for a labeler who lost the old one."""
    token = new_token()
    batch.ends.append(LeaseEnd(lease.token_hash, LeaseStatus.RELEASED, moment.wall, key=batch.key))
    live.leases.rename(lease, hashed(token))
    batch.leases.append(lease.row(live.name, batch.key))
    return token


def view(
    live: LiveStream, lease: HeldLease, token: str | None, payload: str, moment: Moment,
    gain: float = math.nan,
) -> Lease:  # fmt: skip
    """A lease as its labeler sees it."""
    return Lease(
        token=token,
        stream=live.name,
        item=lease.item,
        labeler=lease.labeler,
        payload=json.loads(payload),
        classes=live.settings.classes,
        given_at=lease.given_at,
        expires_at=moment.wall + lease.end - moment.now,
        ttl=lease.ttl,
        slot=live.engine.slot,
        gain=None if math.isnan(gain) else gain,
    )
