"""The registry's schema."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from pml_common.service import CannotStart
from pml_common.storage.errors import RolesMissing
from pml_common.storage.schema import open_scoped_schema
from pml_common.storage.scoped import ScopedPools


@asynccontextmanager
async def open_registry(
    dsn: str, owner_dsn: str | None, patience_s: float, *, migrates: bool = True
) -> AsyncGenerator[ScopedPools]:
    """Migrate, or wait until others have, and open the schema. Raises CannotStart where the user
    lacks its roles, and StorageUnavailable."""
    opened = open_scoped_schema(
        dsn,
        "registry",
        "pml_registry",
        owner_dsn=owner_dsn,
        patience_s=patience_s,
        migrates=migrates,
    )
    try:
        async with opened as pools:
            yield pools
    except RolesMissing as error:
        raise CannotStart(str(error)) from error
