"""GET /api/dns/lookup, whois, records and history; POST /api/dns/fork and the other changes."""

from typing import Annotated, Final, TypeVar
from uuid import UUID, uuid4

from fastapi import APIRouter, Depends, Header, Query

from pml_common.bus.port import QueryClient
from pml_common.contracts import catalog, ids
from pml_common.contracts.dns import (
    ChangedRecord,
    DnsQuery,
    History,
    RecordPage,
    ResolvedName,
    Whois,
)
from pml_gateway.domain.api.api import IdempotencyKey
from pml_gateway.domain.api.records import (
    AnyChange,
    AskHistory,
    AskWhois,
    ChangeVisibility,
    DescribeVersion,
    FindRecords,
    ForkRecord,
    Lookup,
    MergeSources,
    RenameRecord,
    TagRecord,
    TransferRecord,
    UnyankVersion,
    YankVersion,
)
from pml_gateway.entrypoints.http.routing import (
    CONFLICT,
    NOT_APPROVER,
    NOT_FOUND,
    CallerOf,
    api_router,
    with_optional_key,
)
from pml_gateway.ports import Caller, ComposedPrograms

Q = TypeVar("Q", bound=DnsQuery)

READING: Final = {**NOT_APPROVER, **NOT_FOUND}
CHANGING: Final = {**READING, **CONFLICT}
_MERGE_TIMEOUT_S: Final = 30.0

Key = Annotated[
    IdempotencyKey | None,
    Header(
        alias="Idempotency-Key",
        description="A repetition of the request under the same key changes nothing and gets the "
        "first answer.",
    ),
]


def dns_routes(query_client: QueryClient, caller_of: CallerOf) -> APIRouter:
    """Routes that read capability records, their versions and their changes."""
    router = api_router("dns")

    @router.get("/dns/lookup", operation_id="lookup_record", responses=READING)
    async def lookup(
        caller: Annotated[Caller, Depends(caller_of)], asked: Annotated[Lookup, Query()]
    ) -> ResolvedName:
        """Resolve a name to a record and its version: in the caller's project, then in its
        organisation, then among public records."""
        query = _of(caller, asked.query(caller.scope, caller.principal))
        return await query_client.request(catalog.LOOKUP_RECORD, query)

    @router.get("/dns/whois", operation_id="whois_record", responses=READING)
    async def whois(
        caller: Annotated[Caller, Depends(caller_of)], asked: Annotated[AskWhois, Query()]
    ) -> Whois:
        """Return all that is known of a record: owner, origin, use, and every version."""
        query = _of(caller, asked.query(caller.scope, caller.principal))
        return await query_client.request(catalog.WHOIS_RECORD, query)

    @router.get("/dns/records", operation_id="query_records", responses=NOT_APPROVER)
    async def records(
        caller: Annotated[Caller, Depends(caller_of)], asked: Annotated[FindRecords, Query()]
    ) -> RecordPage:
        """Find records; one must match every filter, and have all tags. In a pattern `*` stands
        for any text and `?` for any character."""
        query = _of(caller, asked.query(caller.scope, caller.principal))
        return await query_client.request(catalog.QUERY_RECORDS, query)

    @router.get("/dns/history", operation_id="read_record_history", responses=READING)
    async def history(
        caller: Annotated[Caller, Depends(caller_of)], asked: Annotated[AskHistory, Query()]
    ) -> History:
        """Return the changes of a record, the newest first; a new version's with the diff of its
        code from the version before."""
        query = _of(caller, asked.query(caller.scope, caller.principal))
        return await query_client.request(catalog.READ_HISTORY, query)

    return with_optional_key(router)


def dns_change_routes(
    query_client: QueryClient, composed: ComposedPrograms, caller_of: CallerOf
) -> APIRouter:
    """Routes that change capability records. A record is changed by its owner, or an admin."""
    router = api_router("dns")
    _add_description(router, query_client, caller_of)
    responses = CHANGING

    async def changed(caller: Caller, asked: AnyChange, key: str | None) -> ChangedRecord:
        request_id = _request_id(caller, asked, key)
        query = _of(caller, asked.query(caller.scope, caller.principal, request_id))
        return await query_client.request(catalog.CHANGE_RECORD, query)

    @router.post("/dns/fork", operation_id="fork_record", responses=responses)
    async def fork(
        body: ForkRecord, caller: Annotated[Caller, Depends(caller_of)], key: Key = None
    ) -> ChangedRecord:
        """Copy the version that `source` selects into a new record of the caller's project, and
        return that."""
        return await changed(caller, body, key)

    @router.post("/dns/merge", operation_id="merge_records", responses=responses)
    async def merge(
        body: MergeSources, caller: Annotated[Caller, Depends(caller_of)], key: Key = None
    ) -> ChangedRecord:
        """Make one capability of `sources`, in the versions that they mean now: each gets the
        result of the one before, or `code` calls them. It is offered once a run has succeeded."""
        request_id = _request_id(caller, body, key)
        return await composed.merge(caller, body, request_id, _MERGE_TIMEOUT_S)

    @router.post("/dns/rename", operation_id="rename_record", responses=responses)
    async def rename(
        body: RenameRecord, caller: Annotated[Caller, Depends(caller_of)], key: Key = None
    ) -> ChangedRecord:
        """Give a record another name; the old one leads to it for ever."""
        return await changed(caller, body, key)

    @router.post("/dns/tag", operation_id="tag_record", responses=responses)
    async def tag(
        body: TagRecord, caller: Annotated[Caller, Depends(caller_of)], key: Key = None
    ) -> ChangedRecord:
        """Put a tag on the version that `name` selects (`version_tag`), or add tags to the record
        and remove some."""
        return await changed(caller, body, key)

    @router.post("/dns/yank", operation_id="yank_version", responses=responses)
    async def yank(
        body: YankVersion, caller: Annotated[Caller, Depends(caller_of)], key: Key = None
    ) -> ChangedRecord:
        """Advise against a version: it is not the latest any more, and is found only where it is
        named exactly."""
        return await changed(caller, body, key)

    @router.post("/dns/unyank", operation_id="unyank_version", responses=responses)
    async def unyank(
        body: UnyankVersion, caller: Annotated[Caller, Depends(caller_of)], key: Key = None
    ) -> ChangedRecord:
        """Take back the yank of a version."""
        return await changed(caller, body, key)

    @router.post("/dns/visibility", operation_id="set_record_visibility", responses=responses)
    async def visibility(
        body: ChangeVisibility, caller: Annotated[Caller, Depends(caller_of)], key: Key = None
    ) -> ChangedRecord:
        """Set who sees a record: its owner, its project, its organisation, everyone."""
        return await changed(caller, body, key)

    @router.post("/dns/transfer", operation_id="transfer_record", responses=responses)
    async def transfer(
        body: TransferRecord, caller: Annotated[Caller, Depends(caller_of)], key: Key = None
    ) -> ChangedRecord:
        """Give a record to another owner."""
        return await changed(caller, body, key)

    return with_optional_key(router)


def _add_description(router: APIRouter, query_client: QueryClient, caller_of: CallerOf) -> None:
    @router.post("/dns/describe", operation_id="describe_version", responses=CHANGING)
    async def describe(
        body: DescribeVersion, caller: Annotated[Caller, Depends(caller_of)], key: Key = None
    ) -> ChangedRecord:
        """Say what the version that `name` selects is for: it is found by these words."""
        request_id = _request_id(caller, body, key)
        query = _of(caller, body.query(caller.scope, caller.principal, request_id))
        return await query_client.request(catalog.DESCRIBE_RECORD, query)


def _of(caller: Caller, query: Q) -> Q:
    """Return the query with the role of its caller."""
    return query.model_copy(update={"is_admin": caller.is_admin})


def _request_id(
    caller: Caller, asked: AnyChange | DescribeVersion | MergeSources, key: str | None
) -> UUID:
    """Return the id of a request; a key counts for its caller and for this request alone: another
    one under it is no repetition, and must not be answered as if it were made."""
    if key is None:
        return uuid4()
    whole = type(asked).__name__, asked.model_dump_json()
    return ids.scoped_id(caller.scope, "record-change", caller.principal, key, *whole)
