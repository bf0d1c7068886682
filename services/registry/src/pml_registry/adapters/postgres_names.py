"""Reservations of names in Postgres, and the records that they become."""

import json
from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

import asyncpg
from typing_extensions import override

from pml_common.contracts.callable_names import callable_name
from pml_common.contracts.display_names import parse_display_name
from pml_common.contracts.dns import RecordChange
from pml_common.contracts.references import Tag, parse_selector
from pml_common.contracts.scope import Scope
from pml_common.contracts.tool import JsonObject
from pml_common.storage.columns import scope_columns, scope_of
from pml_common.storage.pool import Connection
from pml_common.storage.queries import load_queries, storable
from pml_common.storage.scoped import ScopedPools
from pml_registry.adapters.postgres_rows import behaviour_texts, tag_of
from pml_registry.adapters.postgres_signatures import sign_version
from pml_registry.adapters.postgres_vectors import put_embedded
from pml_registry.domain.names import fqdn_of
from pml_registry.domain.reservations import (
    Record,
    Refusal,
    Reservation,
    Reserve,
    Standing,
    Use,
    Wish,
    decide,
)
from pml_registry.ports import BehaviourTexts, FoundBy, NameStore, VersionSigning

_SQL = load_queries("pml_registry")


class PostgresNameStore(NameStore):
    """Names in a scope change one after the other, under an advisory lock."""

    def __init__(self, pools: ScopedPools, signing: VersionSigning) -> None:
        self._pools = pools
        self._signing = signing

    @override
    async def reserve(
        self, scope: Scope, wish: Wish, lapses_at: datetime
    ) -> Use | Reserve | Refusal:
        where = scope_columns(scope)
        async with self._pools.transaction(scope) as session:
            await session.execute(_SQL["lock-names"], *where)
            decided = decide(wish, await _standing(session, scope, wish))
            if isinstance(decided, Reserve):
                await session.execute(
                    _SQL["reserve-name"],
                    *where,
                    wish.workflow_id,
                    str(wish.name),
                    wish.behaviour,
                    decided.purpose,
                    storable(wish.principal),
                    decided.record and decided.record.record_id,
                    wish.tag and list(wish.tag.parts),
                    storable(wish.change_summary),
                    storable(wish.intent),
                    lapses_at,
                )
        return decided

    @override
    async def in_the_way(self, scope: Scope, name: str) -> Reservation | None:
        asked = *scope_columns(scope), callable_name(name)
        row = await self._pools.fetchrow(scope, _SQL["reservation-of-name"], *asked)
        return None if row is None else reservation_of(row)

    @override
    async def reservation(self, scope: Scope, workflow_id: UUID) -> Reservation | None:
        async with self._pools.transaction(scope) as session:
            return await _of_workflow(session, scope, workflow_id)

    @override
    async def texts(self, scope: Scope, behaviour: UUID) -> BehaviourTexts:
        asked = *scope_columns(scope), behaviour
        row = await self._pools.fetchrow(scope, _SQL["behaviour-texts"], *asked)
        if row is None:
            raise LookupError(f"{scope} has no behaviour {behaviour}")
        return behaviour_texts(row)

    @override
    async def latest_description(self, scope: Scope, record_id: UUID) -> str:
        asked = *scope_columns(scope), record_id
        found = await self._pools.fetchval(scope, _SQL["latest-description"], *asked)
        return found or ""

    @override
    async def settle(self, scope: Scope, workflow_id: UUID, found_by: FoundBy) -> None:
        where = scope_columns(scope)
        async with self._pools.transaction(scope) as session:
            await session.execute(_SQL["lock-names"], *where)
            held = await _of_workflow(session, scope, workflow_id)
            if held is None or held.is_settled:
                return
            record_id = await _give(session, self._signing, scope, held, found_by.description)
            await session.execute(_SQL["mark-settled"], *where, workflow_id, record_id)
            await session.execute(
                _SQL["describe-behaviour"],
                *where,
                held.behaviour,
                storable(found_by.document),
                json.dumps(dict(found_by.terms)),
                storable(found_by.description),
            )
            await put_embedded(session, scope, held.behaviour, found_by.embedded)

    @override
    async def renew(self, scope: Scope, workflow_id: UUID, lapses_at: datetime) -> None:
        async with self._pools.transaction(scope) as session:
            await session.execute(
                _SQL["renew-reservation"], *scope_columns(scope), workflow_id, lapses_at
            )

    @override
    async def release(self, scope: Scope, workflow_id: UUID) -> None:
        async with self._pools.transaction(scope) as session:
            await session.execute(_SQL["release-name"], *scope_columns(scope), workflow_id)

    @override
    async def lapsed(self, now: datetime, limit: int) -> Sequence[tuple[Scope, Reservation]]:
        async with self._pools.across() as session:
            rows = await session.fetch(_SQL["lapsed-reservations"], now, limit)
        return [(scope_of(row), reservation_of(row)) for row in rows]


async def _standing(session: Connection, scope: Scope, wish: Wish) -> Standing:
    where, name = scope_columns(scope), str(wish.name)
    called = callable_name(name)
    holder = await session.fetchrow(_SQL["holder-of-name"], *where, name, called)
    reserved = await session.fetchrow(_SQL["reservation-of-name"], *where, called)
    of_code = await session.fetchrow(
        _SQL["record-of-code"], *where, wish.behaviour, storable(wish.principal)
    )
    return Standing(
        holder=None if holder is None else record_of(scope, holder),
        reservation=None if reserved is None else reservation_of(reserved),
        of_code=None if of_code is None else record_of(scope, of_code),
    )


async def _of_workflow(session: Connection, scope: Scope, workflow_id: UUID) -> Reservation | None:
    row = await session.fetchrow(
        _SQL["reservation-of-workflow"], *scope_columns(scope), workflow_id
    )
    return None if row is None else reservation_of(row)


async def _give(
    session: Connection,
    signing: VersionSigning,
    scope: Scope,
    held: Reservation,
    description: str,
) -> UUID:
    """Give a reserved name, and return the id of its record."""
    where, record_id = scope_columns(scope), held.record_id
    if held.purpose == "create":
        name = parse_display_name(held.name)
        named = (str(name), name.namespace, name.action, storable(held.principal))
        made = await session.fetchval(_SQL["name-unnamed-record"], *where, held.behaviour, *named)
        if made is not None:
            described = *where, made, held.behaviour, storable(description)
            await session.execute(_SQL["describe-version"], *described)
            await _note(session, scope, made, held, "named", {"name": held.name})
            return made
        # It was named under another name meanwhile: this is one more.
        row = await session.fetchrow(
            _SQL["record-of-code"], *where, held.behaviour, storable(held.principal)
        )
        record_id = None if row is None else row["record_id"]
    if record_id is None:
        raise LookupError(f"{scope} has no record for {held.name}")
    if held.purpose != "version":
        await session.execute(_SQL["add-alias"], *where, record_id, held.name)
        await _note(session, scope, record_id, held, "aliased", {"name": held.name})
        return record_id
    tag = held.tag and list(held.tag.parts)
    made = (held.behaviour, tag, storable(held.change_summary), storable(held.principal))
    number = await session.fetchval(
        _SQL["add-version"], *where, record_id, *made, storable(description)
    )
    await sign_version(session, signing, scope, record_id, number, held.behaviour)
    await session.execute(_SQL["set-latest"], *where, record_id, number)
    await session.execute(_SQL["absorb-unnamed-record"], *where, record_id, held.behaviour)
    details: JsonObject = {"change_summary": storable(held.change_summary)}
    await _note(session, scope, record_id, held, "versioned", details)
    return record_id


async def _note(
    session: Connection,
    scope: Scope,
    record_id: UUID,
    held: Reservation,
    change: RecordChange,
    details: JsonObject,
) -> None:
    """Add to a record's history what a workflow has made of it. It is published as the name's."""
    await session.execute(
        _SQL["note-version"],
        *scope_columns(scope),
        record_id,
        change,
        storable(held.principal),
        held.behaviour,
        json.dumps(details),
    )


def record_of(scope: Scope, row: asyncpg.Record) -> Record:
    """Parse a record that has a name."""
    record_id, name = row["record_id"], row["name"]
    tags = [parse_selector(f"v{tag}") for tag in row["tags"]]
    return Record(
        record_id=record_id,
        name=name,
        fqdn=fqdn_of(scope, name, record_id),
        owner=row["owner"],
        behaviours=row["behaviours"],
        latest=row["latest"],
        tags=[tag for tag in tags if isinstance(tag, Tag)],
        is_private=row["is_private"],
    )


def reservation_of(row: asyncpg.Record) -> Reservation:
    """Parse a row of `name_reservations`."""
    return Reservation(
        name=row["name"],
        workflow_id=row["workflow_id"],
        behaviour=row["pattern_id"],
        purpose=row["purpose"],
        principal=row["principal"],
        lapses_at=row["lapses_at"],
        record_id=row["record_id"],
        tag=tag_of(row),
        change_summary=row["change_summary"],
        intent=row["intent"],
        is_settled=row["settled"],
    )
