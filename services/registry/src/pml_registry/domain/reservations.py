"""Rights to a name: decided before a program runs under it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal
from uuid import UUID

from pml_common.contracts.display_names import DisplayName
from pml_common.contracts.references import Tag
from pml_registry.domain.record_changes import Refused

LAPSES_AFTER = timedelta(seconds=60)
"""Time within which the workflow of a reservation must have been accepted."""

Purpose = Literal["create", "alias", "version"]
"""The use of a name once the workflow has succeeded: that of a new record, one more name of a
record that has the code already, or that of the record whose next version the code becomes."""


@dataclass(frozen=True)
class Wish:
    """A program that is to run under a name; `update`: as the next version, if another has it.
    `intent`: what for."""

    name: DisplayName
    behaviour: UUID
    workflow_id: UUID
    principal: str
    is_admin: bool = False
    update: bool = False
    tag: Tag | None = None
    change_summary: str = ""
    intent: str = ""


@dataclass(frozen=True)
class Record:
    """A named record; `behaviours` are those of its versions, from the first, and `tags` theirs;
    `latest` is the number of the version that its names mean. Of one that is private others are
    told no more than that there is one."""

    record_id: UUID
    name: str
    fqdn: str
    owner: str
    behaviours: Sequence[UUID]
    latest: int
    tags: Sequence[Tag] = ()
    is_private: bool = False


@dataclass(frozen=True)
class Reservation:
    """A name that is kept for a workflow until that ends. After `lapses_at` it is to be looked at:
    it is kept on if the workflow was accepted and goes on.

    `behaviour` is the workflow's program, `record_id` the record that has the name or gets it,
    `intent` what the workflow runs for. `is_settled` once the name is given.
    """

    name: str
    workflow_id: UUID
    behaviour: UUID
    purpose: Purpose
    principal: str
    lapses_at: datetime
    record_id: UUID | None = None
    tag: Tag | None = None
    change_summary: str = ""
    intent: str = ""
    is_settled: bool = False


def description_of(held: Reservation, own: str, latest: str) -> str:
    """Say what the version is for that gets the name: the run's intent, or what is known. `own`
    describes the behaviour, `latest` the latest version of the record, empty where there is none.
    One more name changes nothing."""
    if held.purpose == "alias":
        return own
    return held.intent.strip() or latest or own


@dataclass(frozen=True)
class Standing:
    """The state of a scope where a wish comes: the record and the reservation that have the name
    or one with the same callable name, and the named record that has the code: one of the wish's
    principal if there is one, and one that means it if there is one. A reservation that has lapsed
    was looked at before."""

    holder: Record | None = None
    reservation: Reservation | None = None
    of_code: Record | None = None


@dataclass(frozen=True)
class Use:
    """The record has the code already: the run is one more use of this version."""

    record: Record
    version: int


@dataclass(frozen=True)
class Reserve:
    """The name is reserved for this purpose; `record` is the one that will have it, where there is
    one already."""

    purpose: Purpose
    record: Record | None = None


@dataclass(frozen=True)
class Refusal:
    """The name cannot be had; says who has it, and what to do."""

    why: str


def decide(wish: Wish, standing: Standing) -> Use | Reserve | Refusal:
    """Decide on a wish. The reservation of its own workflow is no hindrance: it is renewed."""
    other = standing.reservation
    if other is not None and other.workflow_id != wish.workflow_id:
        return Refusal(_reserved(wish, other))
    holder = standing.holder
    if holder is not None and wish.behaviour in holder.behaviours:
        return Use(holder, _number_of(wish.behaviour, holder))
    if holder is not None:
        return _next_version(wish, holder)
    known = standing.of_code
    if known is None:
        return Reserve("create")
    if known.owner != wish.principal and not wish.is_admin:
        if known.is_private:
            return Refusal(
                "somebody else keeps this code private: only its owner or an admin names it"
            )
        return Refusal(
            f"this code is {known.name} ({known.fqdn}) of {known.owner}: run it under that name; "
            "only its owner or an admin gives it another"
        )
    if known.behaviours[known.latest - 1] != wish.behaviour:
        return Refusal(_not_meant(wish, known))
    return Reserve("alias", known)


def _not_meant(wish: Wish, known: Record) -> str:
    """Explain that one more name of the record would lead to other code than the wish's."""
    version = f"{known.name}@{_number_of(wish.behaviour, known)}"
    return (
        f"this code is {version} ({known.fqdn}), and names of {known.name} lead to its version "
        f"{known.latest}: run it as {version}, or fork {version} as {wish.name}"
    )


def _next_version(wish: Wish, holder: Record) -> Reserve | Refusal:
    if holder.is_private and holder.owner != wish.principal and not wish.is_admin:
        return Refusal(f"{wish.name} is taken: choose another name")
    held = (
        f"{holder.name} ({holder.fqdn}, version {len(holder.behaviours)}) of {holder.owner} "
        "is other code"
    )
    if holder.name != str(wish.name):
        held = f"{wish.name} leads to {held}"
    if not wish.update:
        return Refusal(
            f"{held}: choose another name, or send `update: true` to make this its version "
            f"{len(holder.behaviours) + 1}"
        )
    if holder.owner != wish.principal and not wish.is_admin:
        return Refusal(
            f"{held}, and only its owner or an admin adds a version: choose another name"
        )
    if wish.tag is not None and wish.tag in holder.tags:
        return Refusal(f"{holder.name} has a version {wish.tag} already: choose another tag")
    return Reserve("version", holder)


def _reserved(wish: Wish, reservation: Reservation) -> str:
    called = (
        f", which is called the same as {wish.name}," if reservation.name != str(wish.name) else ""
    )
    lapses_at = reservation.lapses_at.isoformat(timespec="seconds")
    return (
        f"{reservation.name}{called} is reserved for workflow {reservation.workflow_id} of "
        f"{reservation.principal} until that ends, or until {lapses_at} if it is not accepted by "
        "then: wait for its end, or choose another name"
    )


def _number_of(behaviour: UUID, record: Record) -> int:
    """The newest version with this behaviour."""
    return len(record.behaviours) - list(reversed(record.behaviours)).index(behaviour)


def merge_refused(holder: str | None, of_code: Record | None) -> Refused | None:
    """Refuse a name that `holder` has, and a program that is a named record already."""
    if holder is not None:
        return Refused("conflict", f"{holder}: choose another name")
    if of_code is not None:
        return Refused(
            "conflict",
            f"this program is {of_code.name} ({of_code.fqdn}) of {of_code.owner} already: use "
            "that, or fork it",
        )
    return None


def holder_text(name: str, record: Record | None, reservation: Reservation | None) -> str | None:
    """Say who has a name, or one with the same callable name."""
    if record is not None and record.is_private:
        return f"{name} is taken"
    if record is not None:
        leads = "" if record.name == name else f"{name} leads to "
        return f"{leads}{record.name} ({record.fqdn}) of {record.owner}, which exists already"
    if reservation is not None:
        return (
            f"{reservation.name} is reserved for workflow {reservation.workflow_id} of "
            f"{reservation.principal}"
        )
    return None
