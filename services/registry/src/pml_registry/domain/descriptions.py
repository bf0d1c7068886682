"""What the callers of a capability are told of it."""

from pml_common.contracts.capability import CapabilityDescription, CapabilityRecord


def description_of(record: CapabilityRecord) -> CapabilityDescription:
    """As much of a record as its callers need."""
    return CapabilityDescription(
        capability_id=record.capability_id,
        name=record.name,
        aliases=record.aliases,
        code=record.code,
        code_hash=record.code_hash,
        description=record.description,
        parameters_schema=record.parameters_schema,
    )
