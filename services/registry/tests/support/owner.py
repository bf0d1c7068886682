"""Sessions of the schema's owner, who runs migrations."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import asyncpg

from libs.pml_local.tests.support.databases import as_owner


@asynccontextmanager
async def owner_session(dsn: str) -> AsyncGenerator[asyncpg.Connection]:
    """A session as a migration has one: it sees and changes all rows."""
    session = await asyncpg.connect(
        as_owner(dsn), server_settings={"search_path": "registry,public", "pml.migrating": "on"}
    )
    try:
        yield session
    finally:
        await session.close()
