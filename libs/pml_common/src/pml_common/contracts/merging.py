"""Contracts of merging: one capability made of several, each getting the result of the one before.

The gateway asks for the program (`plan-merge`), has it analysed, and registers it
(`merge-capabilities`).
"""

from typing import Annotated
from uuid import UUID

from pydantic import Field

from pml_common.contracts.analyzer import ExecutionAnalyzed
from pml_common.contracts.base import Contract
from pml_common.contracts.capability import CapabilityName
from pml_common.contracts.dns import ChangedRecord, DnsQuery, RecordReference

MAX_SOURCES = 8

Sources = Annotated[tuple[RecordReference, ...], Field(min_length=2, max_length=MAX_SOURCES)]


class PlanMerge(DnsQuery):
    """Build the program that calls `sources` in order, unless `code` is given; nothing is stored.
    A request that has made a record is answered with that."""

    request_id: UUID
    name: CapabilityName
    sources: Sources
    code: str | None = None


class MergeSource(Contract):
    """A version of a record that is merged; `reference` means exactly it."""

    reference: str
    fqdn: str
    name: str
    version: int = Field(ge=1)
    code_hash: str


class MergePlan(Contract):
    """The program, its intent, and the versions that it is to call. `notices` say what could not be
    checked. `made`: the record that the request has made before."""

    code: str
    intent: str
    sources: tuple[MergeSource, ...]
    notices: tuple[str, ...] = ()
    made: ChangedRecord | None = None


class MergeCapabilities(DnsQuery):
    """Register the analysed program of a merge under a name; it must call all of `sources`, each in
    that version. Idempotent: a repetition under the same `request_id` changes nothing and is
    answered as the first was."""

    request_id: UUID
    name: CapabilityName
    sources: Sources
    analysis: ExecutionAnalyzed
