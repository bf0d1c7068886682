"""Changes of stored versions, as by somebody who can write to the database."""

from collections.abc import Awaitable, Callable

from pml_common.contracts.capability import CapabilityRecord
from services.registry.tests.support.builders import SIMILAR_HASH
from services.registry.tests.support.stores import Stores

CHANGED = "return 1;// changed"
Tamper = Callable[[Stores, CapabilityRecord, CapabilityRecord], Awaitable[None]]
"""Changes what is stored of the first of two versions."""


async def run_sql(stores: Stores, statement: str, *values: object) -> None:
    async with stores.pools.across() as session:
        await session.execute(statement, *values)


async def change_code(stores: Stores, first: CapabilityRecord, _: CapabilityRecord) -> None:
    code = "UPDATE workflow_pattern SET code = $2 WHERE pattern_id = $1"
    await run_sql(stores, code, first.capability_id, CHANGED)


async def change_hash(stores: Stores, first: CapabilityRecord, _: CapabilityRecord) -> None:
    code_hash = "UPDATE workflow_pattern SET code_hash = $2 WHERE pattern_id = $1"
    await run_sql(stores, code_hash, first.capability_id, SIMILAR_HASH)


async def point_to_other_code(
    stores: Stores, first: CapabilityRecord, second: CapabilityRecord
) -> None:
    """Let version 1 be the code of version 2, of which a signature exists, too."""
    pointer = "UPDATE capability_versions SET pattern_id = $2 WHERE record_id = $1 AND number = 1"
    await run_sql(stores, pointer, first.record_id, second.capability_id)


async def copy_signature(stores: Stores, first: CapabilityRecord, second: CapabilityRecord) -> None:
    """Let version 1 be the code of version 2, with the signature of that."""
    await point_to_other_code(stores, first, second)
    signature = "UPDATE capability_versions SET signature = $2 WHERE record_id = $1 AND number = 1"
    await run_sql(stores, signature, first.record_id, second.signature)


async def remove_signature(stores: Stores, first: CapabilityRecord, _: CapabilityRecord) -> None:
    nothing = (
        "UPDATE capability_versions SET signature = NULL, key_id = NULL "
        "WHERE record_id = $1 AND number = 1"
    )
    await run_sql(stores, nothing, first.record_id)
