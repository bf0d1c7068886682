"""The inbox: each message takes effect once, in one transaction with its inbox row."""

import json
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import timedelta
from uuid import UUID

import asyncpg

from pml_common.contracts import catalog
from pml_common.contracts.base import Message
from pml_common.storage.columns import columns
from pml_common.storage.pool import Connection, Pool, transaction

_CLAIM = """
INSERT INTO inbox (message_id, consumer) VALUES ($1, $2)
ON CONFLICT DO NOTHING
RETURNING message_id
"""
_FACTS = "SELECT facts FROM inbox WHERE message_id = $1 AND consumer = $2"
_CONCLUDE = "UPDATE inbox SET facts = $3 WHERE message_id = $1 AND consumer = $2"
_CLAIM_ALL = """
INSERT INTO inbox (message_id, consumer)
SELECT claimed.message_id, $2 FROM unnest($1::uuid[]) AS claimed (message_id)
ON CONFLICT DO NOTHING
RETURNING message_id
"""
_FACTS_OF_ALL = "SELECT message_id, facts FROM inbox WHERE message_id = ANY ($1) AND consumer = $2"
_CONCLUDE_ALL = """
UPDATE inbox
SET facts = concluded.facts::json
FROM unnest($1::uuid[], $2::text[]) AS concluded (message_id, facts)
WHERE inbox.message_id = concluded.message_id AND inbox.consumer = $3
"""
_DELETE = "DELETE FROM inbox WHERE handled_at < now() - $1::interval"


class InboxEntry:
    """One handling: `replayed` holds the messages of an earlier handling, else it is to be
    concluded."""

    def __init__(self, connection: Connection, replayed: tuple[Message, ...] | None) -> None:
        self.connection = connection
        self.replayed = replayed
        self.facts: tuple[Message, ...] = ()

    def conclude(self, facts: Sequence[Message]) -> Sequence[Message]:
        """Store the messages to publish with the effect: a redelivery publishes the same."""
        self.facts = tuple(facts)
        return self.facts

    def take(self) -> Sequence[Message]:
        """Return and clear the messages, for a store that writes them in its own statement."""
        taken, self.facts = self.facts, ()
        return taken


@asynccontextmanager
async def once(pool: Pool, message_id: UUID, consumer: str) -> AsyncGenerator[InboxEntry]:
    """Handle a message in one transaction; a concurrent handler of the same message waits for the
    first, then gets `replayed`. Raises StorageUnavailable."""
    async with once_in(transaction(pool), message_id, consumer) as entry:
        yield entry


@asynccontextmanager
async def once_in(
    opened: AbstractAsyncContextManager[Connection], message_id: UUID, consumer: str
) -> AsyncGenerator[InboxEntry]:
    """Handle a message as `once` does, in a transaction opened for it, as one of a scope."""
    async with opened as held:
        claimed = await held.fetchval(_CLAIM, message_id, consumer)
        if claimed is None:
            text = await held.fetchval(_FACTS, message_id, consumer)
            yield InboxEntry(held, decode_facts(text))
            return
        handling = InboxEntry(held, None)
        yield handling
        if handling.facts:
            await held.execute(_CONCLUDE, message_id, consumer, encode_facts(handling.facts))


class InboxBatch:
    """One handling of several messages, in the transaction of `connection`: `replayed` holds the
    messages published after earlier handlings, by the id of what was handled; the others are to be
    concluded."""

    def __init__(
        self, connection: Connection, replayed: Mapping[UUID, tuple[Message, ...]]
    ) -> None:
        self.connection = connection
        self.replayed = replayed
        self.facts: dict[UUID, Sequence[Message]] = {}

    def conclude(self, facts: Mapping[UUID, Sequence[Message]]) -> Mapping[UUID, Sequence[Message]]:
        """Store with the effect what to publish after each message, and return it with what was
        published earlier: a redelivery publishes the same."""
        self.facts |= {cause: tuple(following) for cause, following in facts.items() if following}
        return {**self.replayed, **self.facts}

    def take(self) -> Sequence[tuple[UUID, str]]:
        """Return and clear the encoded messages to publish, each with the id of its cause, for a
        store that writes them in its own statement."""
        taken, self.facts = self.facts, {}
        return [(cause, encode_facts(facts)) for cause, facts in taken.items()]


@asynccontextmanager
async def batch_once(
    pool: Pool, message_ids: Collection[UUID], consumer: str
) -> AsyncGenerator[InboxBatch]:
    """Handle messages in one transaction; concurrent handlers of some of them wait for the first,
    then get these in `replayed`. What follows from several is stored with one of them: none of a
    batch is acknowledged before all is published, so that one is delivered again if necessary.
    Raises StorageUnavailable."""
    claims = sorted(message_ids)  # in one order, so that two batches cannot deadlock
    async with transaction(pool) as held:
        claimed = {row["message_id"] for row in await held.fetch(_CLAIM_ALL, claims, consumer)}
        rows: Sequence[asyncpg.Record] = ()
        if known := [each for each in claims if each not in claimed]:
            rows = await held.fetch(_FACTS_OF_ALL, known, consumer)
        handling = InboxBatch(held, {row["message_id"]: decode_facts(row["facts"]) for row in rows})
        yield handling
        if concluded := handling.take():
            await held.execute(_CONCLUDE_ALL, *columns(concluded, 2), consumer)


async def delete_handled(pool: Pool, older_than: timedelta) -> None:
    """Delete inbox rows too old for any redelivery."""
    async with transaction(pool) as held:
        await held.execute(_DELETE, older_than)


def encode_facts(facts: Sequence[Message]) -> str:
    """Encode the column `facts`, for a store that claims and concludes in its own statement."""
    # Joined texts: a batch has hundreds of messages, which pydantic encodes itself.
    return f"[{','.join(map(_encoded, facts))}]"


def _encoded(fact: Message) -> str:
    name = json.dumps(catalog.type_of(fact).name)
    return f'{{"message":{name},"content":{fact.model_dump_json()}}}'


def decode_facts(text: str) -> tuple[Message, ...]:
    """Decode the column `facts`."""
    models = {entry.name: entry.model for entry in catalog.MESSAGES}
    return tuple(
        models[entry["message"]].model_validate(entry["content"]) for entry in json.loads(text)
    )
