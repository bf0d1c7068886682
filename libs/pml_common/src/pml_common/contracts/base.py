"""Base classes of contracts: immutability, tolerance of added fields, identity of messages."""

from typing import ClassVar
from uuid import UUID

from pydantic import BaseModel, ConfigDict

from pml_common.contracts.scope import Scope


class Contract(BaseModel):
    """An immutable value. Unknown fields are ignored, so that a newer sender may add some. Its
    validator is built at its first use (`built.py`)."""

    model_config = ConfigDict(
        frozen=True,
        extra="ignore",
        allow_inf_nan=False,
        serialize_by_alias=True,
        defer_build=True,
    )


class Message(Contract):
    """A published message about one entity in a scope."""

    entity_field: ClassVar[str] = "workflow_id"
    """Name of the field whose value ends the subject."""

    scope: Scope

    @property
    def message_id(self) -> UUID:
        """The id by which the server deduplicates; equal for equal causes."""
        raise NotImplementedError

    @property
    def entity(self) -> str:
        """Last token of the subject: workflow, capability or server."""
        return str(getattr(self, self.entity_field))


class Event(Message):
    """A message about something that happened, published by its owner."""

    event_id: UUID

    @property
    def message_id(self) -> UUID:
        """The event's id."""
        return self.event_id


class Command(Message):
    """A request to its owner to do some work, once, in one replica."""

    command_id: UUID

    @property
    def message_id(self) -> UUID:
        """The command's id."""
        return self.command_id


class Signal(Message):
    """A message that is not stored: every replica that listens hears it at most once, now."""

    signal_id: UUID

    @property
    def message_id(self) -> UUID:
        """The signal's id."""
        return self.signal_id


class Query(Contract):
    """A request to its owner for an immediate reply; nothing is stored."""

    scope: Scope
