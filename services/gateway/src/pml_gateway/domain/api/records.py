"""Requests about capability records, the same over REST and for the tools `dns:*`, and the queries
that they become."""

from abc import ABC, abstractmethod
from typing import Annotated, Literal, Self
from uuid import UUID

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from pml_common.contracts.capability import Visibility, WholeTag
from pml_common.contracts.dns import (
    MAX_LABELS,
    Change,
    ChangeRecord,
    Cursor,
    DescribeRecord,
    Fork,
    Glob,
    Label,
    LabelRecord,
    LookupRecord,
    QueryRecords,
    ReadHistory,
    RecordReference,
    Rename,
    SetVisibility,
    TagVersion,
    Transfer,
    Unyank,
    WhoisRecord,
    Yank,
)
from pml_common.contracts.merging import MAX_SOURCES, PlanMerge
from pml_common.contracts.references import parse_reference
from pml_common.contracts.scope import Scope
from pml_gateway.domain.api.api import NewName
from pml_gateway.domain.api.request import Request


def _checked(text: str) -> str:
    """Refuse what is no reference, with the part that is wrong."""
    parse_reference(text)
    return text


Named = Annotated[
    RecordReference,
    AfterValidator(_checked),
    Field(
        description="The record: its name (`fs:read_json`), with a version where another than the "
        "latest is meant (`fs:read_json@2`, `@v1`, `@v1.2.0`, `@2025-12-22`), a name in another "
        "scope (`cap:acme.webapp:fs:read_json`), a fully qualified name, or an id."
    ),
]
Text = Annotated[str, StringConstraints(min_length=1, pattern=r"^[^\x00]*[^\x00\s][^\x00]*$")]
"""Text that is not blank."""
Labels = Annotated[tuple[Label, ...], Field(max_length=MAX_LABELS)]


class Lookup(Request):
    """Resolve a name."""

    from_url = True

    name: Named

    def query(self, scope: Scope, principal: str) -> LookupRecord:
        """Build the query to the registry."""
        return LookupRecord(scope=scope, principal=principal, reference=self.name)


class AskWhois(Request):
    """Read all that is known of a record."""

    from_url = True

    name: Named

    def query(self, scope: Scope, principal: str) -> WhoisRecord:
        """Build the query to the registry."""
        return WhoisRecord(scope=scope, principal=principal, reference=self.name)


class AskHistory(Request):
    """Read the changes of a record, the newest first."""

    from_url = True

    name: Named
    limit: int = Field(default=20, ge=1, le=100, description="Changes in a page.")
    cursor: Cursor | None = Field(
        default=None, description="`next_cursor` of the page before; none for the first."
    )

    def query(self, scope: Scope, principal: str) -> ReadHistory:
        """Build the query to the registry."""
        return ReadHistory(
            scope=scope,
            principal=principal,
            reference=self.name,
            limit=self.limit,
            cursor=self.cursor,
        )


class FindRecords(Request):
    """Find records; one must match every filter, and have all tags. In a pattern `*` stands for any
    text and `?` for any character."""

    from_url = True

    reach: Literal["project", "org", "public"] = Field(
        default="project",
        description="Where to look: in the own project; in the organisation's shared records as "
        "well; in public ones as well.",
    )
    created_by: Glob | None = Field(default=None, description="A pattern, as `erwan@*`.")
    namespace: Glob | None = Field(default=None, description="A pattern, as `fs`.")
    version_tag: Glob | None = Field(default=None, description="A pattern, as `v1.*`.")
    tags: Labels = Field(default=(), description="Tags of the record, as `json`.")
    visibility: Visibility | None = Field(default=None, description="Who sees the record.")
    text: Glob | None = Field(default=None, description="Text in name or description.")
    include_unlisted: bool = Field(
        default=False, description="Also those of which no run has succeeded yet."
    )
    include_unnamed: bool = Field(
        default=False, description="Also those with a provisional name alone."
    )
    sort: Literal["usage", "date", "name"] = Field(
        default="usage",
        description="The most used, the newest, or the first of the alphabet first.",
    )
    limit: int = Field(default=50, ge=1, le=200, description="Records in a page.")
    cursor: Cursor | None = Field(
        default=None, description="`next_cursor` of the page before; none for the first."
    )

    def query(self, scope: Scope, principal: str) -> QueryRecords:
        """Build the query to the registry."""
        return QueryRecords(scope=scope, principal=principal, **dict(self))


class Alter(Request, ABC):
    """A change of the record that `name` means."""

    name: Named

    @abstractmethod
    def change(self) -> Change:
        """Return what is to be changed."""

    def query(self, scope: Scope, principal: str, request_id: UUID) -> ChangeRecord:
        """Build the query to the registry."""
        return ChangeRecord(
            scope=scope,
            principal=principal,
            request_id=request_id,
            reference=self.name,
            change=self.change(),
        )


class ForkRecord(Request):
    """Copy a version into a new record of the own project."""

    source: Named
    name: NewName = Field(description="Name of the new record: namespace:action.")

    def query(self, scope: Scope, principal: str, request_id: UUID) -> ChangeRecord:
        """Build the query to the registry."""
        return ChangeRecord(
            scope=scope,
            principal=principal,
            request_id=request_id,
            reference=self.source,
            change=Fork(name=self.name),
        )


class MergeSources(Request):
    """Make one capability of several, which are called in order."""

    sources: Annotated[tuple[Named, ...], Field(min_length=2, max_length=MAX_SOURCES)]
    name: NewName = Field(description="Name of the new record: namespace:action.")
    code: Annotated[str, StringConstraints(min_length=1)] | None = Field(
        default=None,
        description="TypeScript that calls all of them, as the body of an async function; without "
        "it each gets the result of the one before.",
    )

    def query(self, scope: Scope, principal: str, request_id: UUID) -> PlanMerge:
        """Build the query to the registry."""
        return PlanMerge(
            scope=scope,
            principal=principal,
            request_id=request_id,
            name=self.name,
            sources=self.sources,
            code=self.code,
        )


class RenameRecord(Alter):
    """Give a record another name; the old one leads to it for ever."""

    new_name: NewName = Field(description="The new name: namespace:action.")

    def change(self) -> Rename:
        """Return what is to be changed."""
        return Rename(name=self.new_name)


class DescribeVersion(Request):
    """Say what the version that `name` selects is for."""

    name: Named
    description: Text = Field(
        max_length=4000, description="What it is for: it is found by these words."
    )

    def query(self, scope: Scope, principal: str, request_id: UUID) -> DescribeRecord:
        """Build the query to the registry."""
        return DescribeRecord(
            scope=scope,
            principal=principal,
            request_id=request_id,
            reference=self.name,
            description=self.description,
        )


class TagRecord(Alter):
    """Put a version tag on the version that `name` selects, or add tags to the record and remove
    some: one of the two."""

    version_tag: WholeTag | None = Field(
        default=None,
        description="Tag for the version, as `v1.2.0`; it moves there from another version.",
    )
    add: Labels = Field(default=(), description="Tags to add to the record, as `json`.")
    remove: Labels = Field(default=(), description="Tags to remove from the record.")

    @model_validator(mode="after")
    def _one_of_two(self) -> Self:
        if (self.version_tag is None) != bool(self.add or self.remove):
            raise ValueError("give either version_tag, or tags to add or remove")
        return self

    def change(self) -> TagVersion | LabelRecord:
        """Return what is to be changed."""
        if self.version_tag is not None:
            return TagVersion(version_tag=self.version_tag)
        return LabelRecord(add=self.add, remove=self.remove)


class YankVersion(Alter):
    """Advise against the version that `name` selects: it is not the latest any more, and is found
    only where it is named exactly."""

    reason: Text = Field(max_length=2000, description="Why; whoever uses the version is told.")

    def change(self) -> Yank:
        """Return what is to be changed."""
        return Yank(reason=self.reason)


class UnyankVersion(Alter):
    """Take back the yank of the version that `name` selects."""

    def change(self) -> Unyank:
        """Return what is to be changed."""
        return Unyank()


class ChangeVisibility(Alter):
    """Set who sees a record: its owner, its project, its organisation, everyone."""

    visibility: Visibility = Field(description="Who sees it.")

    def change(self) -> SetVisibility:
        """Return what is to be changed."""
        return SetVisibility(visibility=self.visibility)


class TransferRecord(Alter):
    """Give a record to another owner."""

    owner: Text = Field(max_length=256, description="Principal that will own it.")

    def change(self) -> Transfer:
        """Return what is to be changed."""
        return Transfer(owner=self.owner)


AnyChange = (
    ForkRecord
    | RenameRecord
    | TagRecord
    | YankVersion
    | UnyankVersion
    | ChangeVisibility
    | TransferRecord
)
"""A request that changes a record."""
