"""Handles `settle-name`."""

from pml_common.bus.errors import QueryFailed
from pml_common.contracts.registry import SettledName, SettleName
from pml_registry.application.naming import Naming
from pml_registry.ports import VersionRefused


async def on_settle_name(query: SettleName, naming: Naming) -> SettledName:
    """Give the reserved name to the capability of a workflow that succeeded, else release it.
    Raises QueryFailed `conflict` where what is stored of it is not what ran."""
    try:
        name = await naming.settle(query.scope, query.workflow_id, succeeded=query.succeeded)
    except VersionRefused as error:
        raise QueryFailed("conflict", str(error)) from error
    return SettledName(name=name)
