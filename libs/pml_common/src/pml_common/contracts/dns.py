"""Contracts of the capability DNS: what is known of records, and changes to them.

`reference` is any reference to a capability (`references.py`). A record that the principal may not
see is not found.
"""

from typing import Annotated, Literal
from uuid import UUID

from pydantic import AwareDatetime, Field, StringConstraints

from pml_common.contracts.base import Contract, Query
from pml_common.contracts.capability import (
    CapabilityName,
    CapabilityRecord,
    Health,
    Usage,
    Visibility,
    WholeTag,
)
from pml_common.contracts.scope import Scope
from pml_common.contracts.source import SourceType
from pml_common.contracts.tool import JsonObject

RecordReference = Annotated[str, StringConstraints(pattern=r"^[^\x00]{1,256}$")]
Glob = Annotated[str, StringConstraints(pattern=r"^[^\x00]{1,128}$")]
"""A pattern in which `*` stands for any text and `?` for any character."""
Label = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_.-]{0,63}$")]
"""A record's tag, as `finance`."""
Purpose = Annotated[str, StringConstraints(pattern=r"^[^\x00]{1,4000}$")]
"""A description of a version; as long as an intent may be."""
Cursor = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,512}$")]
"""A mark of where the next page begins; a text to be sent back as it is."""

MAX_LABELS = 32

RecordChange = Literal[
    "created",
    "named",
    "aliased",
    "versioned",
    "renamed",
    "tagged",
    "labelled",
    "yanked",
    "unyanked",
    "published",
    "transferred",
    "forked",
]
"""The kind of a change of a record; `published`: its visibility is another; `labelled`: its tags
are, or the description of a version, which `details` has then."""


class DnsQuery(Query):
    """A query of a principal, who may be an admin of the scope."""

    principal: str
    is_admin: bool = False


class LookupRecord(DnsQuery):
    """Resolve a reference to a record and version, in the scope's project, its organisation, and
    what is public."""

    reference: RecordReference


class ResolvedName(Contract):
    """The meaning of a reference. `found_in`: the scope's project, another one of its organisation,
    or a public record of another. `notices` say what a caller should change: a former name, a
    yanked or failing version. `health` and `last_good` are as in `CapabilityRecord`. `preview`: the
    beginning of the program, at most 240 characters."""

    reference: str
    fqdn: str
    name: str
    record_id: UUID
    capability_id: UUID
    scope: Scope
    found_in: Literal["project", "org", "public"]
    version: int = Field(ge=1)
    version_tag: WholeTag | None = None
    source_type: SourceType = "code"
    preview: str = ""
    health: Health = "unproven"
    last_good: str | None = None
    notices: tuple[str, ...] = ()


class WhoisRecord(DnsQuery):
    """Read all that is known of a record."""

    reference: RecordReference


class VersionSummary(Contract):
    """One version of a record. The registry has signed it by its key `key_id`, at `signed_at`;
    None for one that was signed before this was stored. `verified` and `health` are as in
    `CapabilityRecord`. `description`: what it is for."""

    version: int = Field(ge=1)
    version_tag: WholeTag | None = None
    capability_id: UUID
    code_hash: str
    description: str = ""
    change_summary: str = ""
    created_by: str
    created_at: AwareDatetime
    yanked_reason: str | None = None
    signature: str | None = None
    key_id: str | None = None
    signed_at: AwareDatetime | None = None
    verified: bool = False
    usage: Usage = Usage()
    health: Health = "unproven"


class Whois(Contract):
    """A record at the version that was asked for, with that version's use, and all its versions,
    the newest first. `record_usage`: its use over all of them. `merged_from`: the versions that it
    was made of by a merge."""

    fqdn: str
    found_in: Literal["project", "org", "public"]
    record: CapabilityRecord
    usage: Usage
    record_usage: Usage | None = None
    versions: tuple[VersionSummary, ...]
    merged_from: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()


class QueryRecords(DnsQuery):
    """Find records by what is known of them; a record must match every filter, and have all tags.

    `reach`: the scope's project; its organisation's shared records as well; public ones as well.
    `text` is found in name and description. `include_parameters`: each with the schema of its
    arguments. `sort` by `usage`: those whose latest version ran most often first.
    """

    reach: Literal["project", "org", "public"] = "project"
    created_by: Glob | None = None
    namespace: Glob | None = None
    version_tag: Glob | None = None
    tags: Annotated[tuple[Label, ...], Field(max_length=MAX_LABELS)] = ()
    visibility: Visibility | None = None
    text: Glob | None = None
    include_unlisted: bool = False
    include_unnamed: bool = False
    include_parameters: bool = False
    sort: Literal["usage", "date", "name"] = "usage"
    limit: int = Field(default=50, ge=1, le=200)
    cursor: Cursor | None = None


class RecordSummary(Contract):
    """A record in a list, at its latest version, with that version's use; `health` and `last_good`
    are as in `CapabilityRecord`."""

    record_id: UUID
    fqdn: str
    name: str
    scope: Scope
    owner: str
    visibility: Visibility
    tags: tuple[str, ...] = ()
    version: int = Field(ge=1)
    version_tag: WholeTag | None = None
    capability_id: UUID
    description: str = ""
    parameters_schema: JsonObject | None = None
    listed: bool
    usage: Usage = Usage()
    health: Health = "unproven"
    last_good: str | None = None
    created_by: str
    created_at: AwareDatetime
    updated_at: AwareDatetime


class RecordPage(Contract):
    """One page of records, how many match in all, and where the next page begins, if there is
    one."""

    records: tuple[RecordSummary, ...]
    total: int = Field(ge=0)
    next_cursor: Cursor | None = None


class ReadHistory(DnsQuery):
    """Read what was changed of a record, the newest first."""

    reference: RecordReference
    limit: int = Field(default=20, ge=1, le=100)
    cursor: Cursor | None = None


class HistoryEntry(Contract):
    """One change of a record. `sequence` counts a record's changes from 1. `diff` is the unified
    diff from the code of the version before, for a new version. `key_id` and `signed_at` are as in
    `VersionSummary`."""

    sequence: int = Field(ge=1)
    change: RecordChange
    principal: str
    at: AwareDatetime
    version: int = Field(ge=1)
    version_tag: WholeTag | None = None
    details: JsonObject = Field(default_factory=dict)
    key_id: str | None = None
    signed_at: AwareDatetime | None = None
    diff: str | None = None


class History(Contract):
    """One page of a record's changes."""

    record_id: UUID
    fqdn: str
    name: str
    entries: tuple[HistoryEntry, ...]
    next_cursor: Cursor | None = None
    notices: tuple[str, ...] = ()


class Rename(Contract):
    """Give the record another name; the old one leads to it for ever."""

    kind: Literal["rename"] = "rename"
    name: CapabilityName


class TagVersion(Contract):
    """Put a tag on the version that the reference selects; it moves there from another one."""

    kind: Literal["tag"] = "tag"
    version_tag: WholeTag


class LabelRecord(Contract):
    """Add tags to the record, and remove some."""

    kind: Literal["label"] = "label"
    add: Annotated[tuple[Label, ...], Field(max_length=MAX_LABELS)] = ()
    remove: Annotated[tuple[Label, ...], Field(max_length=MAX_LABELS)] = ()


class Yank(Contract):
    """Advise against the version that the reference selects: it is not the latest any more, and is
    found only where it is named exactly."""

    kind: Literal["yank"] = "yank"
    reason: Annotated[str, StringConstraints(pattern=r"^[^\x00]{1,2000}$")]


class Unyank(Contract):
    """Take back a yank."""

    kind: Literal["unyank"] = "unyank"


class SetVisibility(Contract):
    """Set who sees the record."""

    kind: Literal["visibility"] = "visibility"
    visibility: Visibility


class Transfer(Contract):
    """Give the record to another owner."""

    kind: Literal["transfer"] = "transfer"
    owner: Annotated[str, StringConstraints(pattern=r"^[^\x00]{1,256}$")]


class Fork(Contract):
    """Copy the version that the reference selects into a new record of the principal's scope."""

    kind: Literal["fork"] = "fork"
    name: CapabilityName


Change = Annotated[
    Rename | TagVersion | LabelRecord | Yank | Unyank | SetVisibility | Transfer | Fork,
    Field(discriminator="kind"),
]


class ChangeRecord(DnsQuery):
    """Change a record, in one transaction. Idempotent: a repetition under the same `request_id`
    changes nothing and is answered as the first was."""

    request_id: UUID
    reference: RecordReference
    change: Change


class DescribeRecord(DnsQuery):
    """Say what the version that the reference selects is for. Idempotent like `change-record`."""

    request_id: UUID
    reference: RecordReference
    description: Purpose


class ChangedRecord(Contract):
    """The record as it is now, and whether the request changed anything; for a fork and a merge the
    new record. `merged_from`: the versions that it was made of by a merge."""

    fqdn: str
    record: CapabilityRecord
    changed: bool
    merged_from: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()
