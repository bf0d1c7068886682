"""The inbox: each message takes effect once, in one transaction with its inbox row."""

import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from uuid import UUID

from pml_common.contracts import catalog
from pml_common.contracts.base import Message
from pml_common.storage.pool import Connection, Pool, transaction

_CLAIM = """
INSERT INTO inbox (message_id, consumer) VALUES ($1, $2)
ON CONFLICT DO NOTHING
RETURNING message_id
"""
_FACTS = "SELECT facts FROM inbox WHERE message_id = $1 AND consumer = $2"
_CONCLUDE = "UPDATE inbox SET facts = $3 WHERE message_id = $1 AND consumer = $2"
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
    async with transaction(pool) as held:
        claimed = await held.fetchval(_CLAIM, message_id, consumer)
        if claimed is None:
            text = await held.fetchval(_FACTS, message_id, consumer)
            yield InboxEntry(held, decode_facts(text))
            return
        handling = InboxEntry(held, None)
        yield handling
        if handling.facts:
            await held.execute(_CONCLUDE, message_id, consumer, encode_facts(handling.facts))


async def delete_handled(pool: Pool, older_than: timedelta) -> None:
    """Delete inbox rows too old for any redelivery."""
    async with transaction(pool) as held:
        await held.execute(_DELETE, older_than)


def encode_facts(facts: Sequence[Message]) -> str:
    """Encode the column `facts`, for a store that claims and concludes in its own statement."""
    return json.dumps(
        [
            {"message": catalog.type_of(each).name, "content": each.model_dump(mode="json")}
            for each in facts
        ]
    )


def decode_facts(text: str) -> tuple[Message, ...]:
    """Decode the column `facts`."""
    models = {entry.name: entry.model for entry in catalog.MESSAGES}
    return tuple(
        models[entry["message"]].model_validate(entry["content"]) for entry in json.loads(text)
    )
