"""Contracts of curation: names for capabilities that have none, and variants made one."""

from typing import Annotated, Literal, Self
from uuid import UUID

from pydantic import Field, model_validator

from pml_common.contracts.analyzer import ExecutionAnalyzed
from pml_common.contracts.base import Contract
from pml_common.contracts.capability import CapabilityName, WholeTag
from pml_common.contracts.dns import DnsQuery, RecordReference
from pml_common.contracts.tool import JsonObject

MAX_CURATED = 100


class NameChoice(Contract):
    """A name for a capability."""

    capability_id: UUID
    name: Annotated[str, Field(max_length=200)]


class Curate(DnsQuery):
    """Name listed capabilities that have no name. `suggest`: suggest names; `auto`: give those
    suggested with at least `min_confidence`; `apply`: give `names`. Idempotent.

    Of at most `limit`, the most used first, with at least `min_usage` runs. `namespace`: of the
    suggestions only those in it. A capability stays its owner's.
    """

    mode: Literal["suggest", "auto", "apply"] = "suggest"
    names: Annotated[tuple[NameChoice, ...], Field(max_length=MAX_CURATED)] = ()
    min_confidence: float = Field(default=0.8, ge=0, le=1)
    min_usage: int = Field(default=0, ge=0)
    namespace: str | None = None
    limit: int = Field(default=50, ge=1, le=MAX_CURATED)


class NameSuggestion(Contract):
    """A suggested name, why, and how sure: `confidence` in [0, 1]. `provisional_name` is the
    present one; `source`: `model` if a language model chose the name."""

    capability_id: UUID
    provisional_name: str
    name: str
    confidence: float = Field(ge=0, le=1)
    reasons: tuple[str, ...]
    source: Literal["rules", "model"]


class MergeSuggestion(Contract):
    """Capabilities that differ by literals alone, the offered one first, as one program: `code`
    has `parameters` where their literals vary."""

    capability_ids: tuple[UUID, ...]
    name: str
    code: str
    parameters: tuple[str, ...]
    reasons: tuple[str, ...]


class GivenName(Contract):
    """A name that a capability has now."""

    capability_id: UUID
    name: str


class RefusedName(Contract):
    """A name that a capability did not get, and why."""

    capability_id: UUID
    name: str
    why: str


class Curation(Contract):
    """The outcome of a curation. `unnamed` counts the listed capabilities of the scope that are
    without a name now."""

    suggestions: tuple[NameSuggestion, ...] = ()
    merges: tuple[MergeSuggestion, ...] = ()
    given: tuple[GivenName, ...] = ()
    refused: tuple[RefusedName, ...] = ()
    unnamed: int = Field(ge=0)


class LiftCapability(DnsQuery):
    """Make one program of a capability and those of the scope that differ from it by literals
    alone and have succeeded; nothing is stored."""

    reference: RecordReference


class VariantArguments(Contract):
    """The arguments with which a lifted program behaves as one of its variants."""

    capability_id: UUID
    arguments: JsonObject


class LiftedCapability(Contract):
    """A lifted program: the literals that vary are parameters, by default those of the first
    variant, which is the capability asked for."""

    capability_id: UUID
    code: str
    parameters_schema: JsonObject
    variants: tuple[VariantArguments, ...]


class SaveCapability(DnsQuery):
    """Give a name to the program of a workflow that has succeeded, or to a capability that has, as
    if it were run under that name; the principal is the owner of a new record. Idempotent.

    `lifted` is the analysis of the capability's lifted program (`lift-capability`): that gets the
    name, and takes the place of its unnamed variants in discovery. `update`, `version_tag` and
    `change_summary` are as in `reserve-name`.
    """

    name: CapabilityName
    workflow_id: UUID | None = None
    reference: RecordReference | None = None
    lifted: ExecutionAnalyzed | None = None
    update: bool = False
    version_tag: WholeTag | None = None
    change_summary: Annotated[str, Field(max_length=2000)] = ""

    @model_validator(mode="after")
    def _names_one(self) -> Self:
        if (self.workflow_id is None) == (self.reference is None):
            raise ValueError("name a workflow or a capability, one of the two")
        return self


class SavedCapability(Contract):
    """The name, what it is to the program (as in `reserve-name`), the program's id and version, and
    the parameters that were made of its literals, if it was lifted."""

    name: str
    purpose: Literal["use", "create", "alias", "version"]
    capability_id: UUID
    version: int = Field(default=1, ge=1)
    parameters: tuple[str, ...] = ()
