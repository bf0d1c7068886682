"""Handles `lift-capability`."""

from pml_analysis.variants import NotLiftable
from pml_common.bus.errors import QueryFailed
from pml_common.contracts.capability import CapabilityRecord
from pml_common.contracts.curation import LiftCapability, LiftedCapability, VariantArguments
from pml_common.contracts.dns import DnsQuery
from pml_registry.application.curation import Curator
from pml_registry.application.resolution import Resolution
from pml_registry.domain.visibility import Viewer


async def on_lift_capability(
    query: LiftCapability, curator: Curator, resolution: Resolution
) -> LiftedCapability:
    """Return the program that a capability and its variants are. Raises QueryFailed: `not_found`,
    and `conflict` where they cannot be one."""
    record = await own_record(viewer_of(query), query.reference, resolution)
    try:
        merge = await curator.lift(viewer_of(query), record.capability_id)
    except NotLiftable as reason:
        raise QueryFailed("conflict", f"{record.name} cannot be lifted: {reason}") from reason
    of_each = zip(merge.variants, merge.lifted.arguments, strict=True)
    return LiftedCapability(
        capability_id=record.capability_id,
        code=merge.lifted.code,
        parameters_schema=merge.lifted.parameters_schema,
        variants=tuple(
            VariantArguments(capability_id=variant.capability_id, arguments=dict(arguments))
            for variant, arguments in of_each
        ),
    )


async def own_record(viewer: Viewer, reference: str, resolution: Resolution) -> CapabilityRecord:
    """Resolve a reference to a record of the viewer's scope. Raises QueryFailed `not_found`."""
    record = (await resolution.resolve(viewer, reference)).record
    if record.scope != viewer.scope:
        raise QueryFailed("not_found", f"{reference} belongs to {record.scope}: fork it first")
    return record


def viewer_of(query: DnsQuery) -> Viewer:
    """Return who asks."""
    return Viewer(query.scope, query.principal, query.is_admin)
