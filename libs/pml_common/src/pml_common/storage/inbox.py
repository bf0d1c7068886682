"""Handling a message once, whatever is redelivered: effect and memory in one transaction."""

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
_FORGET = "DELETE FROM inbox WHERE handled_at < now() - $1::interval"


class Once:
    """One handling: either replayed, with the facts it stated, or open, to be concluded."""

    def __init__(self, connection: Connection, replayed: tuple[Message, ...] | None) -> None:
        self.connection = connection
        self.replayed = replayed
        self.facts: tuple[Message, ...] = ()

    def conclude(self, facts: Sequence[Message]) -> Sequence[Message]:
        """Remember `facts` with the effect, so that a redelivery states the same."""
        self.facts = tuple(facts)
        return self.facts

    def take(self) -> Sequence[Message]:
        """The facts, for a store that remembers them in a statement of its own."""
        taken, self.facts = self.facts, ()
        return taken


@asynccontextmanager
async def once(pool: Pool, message_id: UUID, consumer: str) -> AsyncGenerator[Once]:
    """Handle a message in one transaction; a second handler of the same message waits for the
    first and then sees `replayed`. Raises StorageUnavailable."""
    async with transaction(pool) as held:
        claimed = await held.fetchval(_CLAIM, message_id, consumer)
        if claimed is None:
            text = await held.fetchval(_FACTS, message_id, consumer)
            yield Once(held, decode_facts(text))
            return
        handling = Once(held, None)
        yield handling
        if handling.facts:
            await held.execute(_CONCLUDE, message_id, consumer, encode_facts(handling.facts))


async def forget_handled(pool: Pool, older_than: timedelta) -> None:
    """Drop memories that no redelivery can ask for any more."""
    async with transaction(pool) as held:
        await held.execute(_FORGET, older_than)


def encode_facts(facts: Sequence[Message]) -> str:
    """The column `facts`, for a store that claims and concludes in one statement of its own."""
    return json.dumps(
        [
            {"message": catalog.type_of(fact).name, "content": fact.model_dump(mode="json")}
            for fact in facts
        ]
    )


def decode_facts(text: str) -> tuple[Message, ...]:
    """What a column `facts` holds."""
    models = {entry.name: entry.model for entry in catalog.MESSAGES}
    return tuple(
        models[entry["message"]].model_validate(entry["content"]) for entry in json.loads(text)
    )
