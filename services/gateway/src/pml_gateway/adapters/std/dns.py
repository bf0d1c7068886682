"""The tools `dns:*`: capability records for programs and agents."""

from collections.abc import Sequence
from typing import Any, Final, TypeVar

from pml_common.contracts import catalog, ids
from pml_common.contracts.dns import ChangedRecord, ChangeRecord, DescribeRecord
from pml_common.contracts.tool import ToolAnnotations
from pml_gateway.adapters.std.tools import (
    ADDS,
    CHANGES,
    READS,
    Backing,
    StdTool,
    asks,
    asks_as_caller,
)
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
from pml_gateway.ports import CallOrigin

C = TypeVar("C", bound=AnyChange)

_OWNERS: Final = "Only its owner may."


def _change(
    name: str, title: str, description: str, arguments: type[C], annotations: ToolAnnotations = ADDS
) -> StdTool[C]:
    """Build a tool that changes a record; a call, whatever is repeated of it, is one request."""

    def query(asked: C, origin: CallOrigin) -> ChangeRecord:
        request_id = ids.effect_id(origin.key, "record-change")
        return asked.query(origin.caller.scope, origin.caller.principal, request_id)

    answer = asks(catalog.CHANGE_RECORD, query)
    return StdTool(name, title, description, annotations, arguments, answer)


def _described(asked: DescribeVersion, origin: CallOrigin) -> DescribeRecord:
    """Build the query of a call; whatever is repeated of it, it is one request."""
    request_id = ids.effect_id(origin.key, "record-change")
    return asked.query(origin.caller.scope, origin.caller.principal, request_id)


async def _merge(
    backing: Backing, asked: MergeSources, origin: CallOrigin, timeout_s: float
) -> ChangedRecord:
    request_id = ids.effect_id(origin.key, "record-change")
    return await backing.composed.merge(origin.caller, asked, request_id, timeout_s)


LOOKUP: Final = StdTool(
    "lookup",
    "Resolve a name",
    "Resolve a capability's name to its record and version: in the own project, then in its "
    "organisation, then among public records. Tells of former names and yanked versions.",
    READS,
    Lookup,
    asks_as_caller(catalog.LOOKUP_RECORD, Lookup.query),
)
QUERY: Final = StdTool(
    "query",
    "Find records",
    "Find capability records by creator, namespace, version tag, tags, visibility or text, in "
    "pages.",
    READS,
    FindRecords,
    asks_as_caller(catalog.QUERY_RECORDS, FindRecords.query),
)
WHOIS: Final = StdTool(
    "whois",
    "Show a record",
    "Return all that is known of a capability: code, parameters, owner, origin, use, and every "
    "version.",
    READS,
    AskWhois,
    asks_as_caller(catalog.WHOIS_RECORD, AskWhois.query),
)
HISTORY: Final = StdTool(
    "history",
    "Show changes",
    "Return the changes of a capability, the newest first, each new version's with the diff of its "
    "code from the version before.",
    READS,
    AskHistory,
    asks_as_caller(catalog.READ_HISTORY, AskHistory.query),
)
FORK: Final = _change(
    "fork",
    "Copy a capability",
    "Copy a version of a capability that you may see into a new one of your own project, to change "
    "it there.",
    ForkRecord,
)
MERGE: Final = StdTool(
    "merge",
    "Join capabilities",
    "Make one capability of several: each gets the result of the one before, if they fit, or the "
    "given code calls all of them. Their versions stay those of the merge.",
    ADDS,
    MergeSources,
    _merge,
)
RENAME: Final = _change(
    "rename",
    "Rename a capability",
    f"Give a capability another name; the old one leads to it for ever. {_OWNERS}",
    RenameRecord,
)
DESCRIBE: Final = StdTool(
    "describe",
    "Describe a capability",
    "Say what the version of a capability that `name` selects is for; it is found by these words. "
    f"{_OWNERS}",
    ADDS,
    DescribeVersion,
    asks(catalog.DESCRIBE_RECORD, _described),
)
TAG: Final = _change(
    "tag",
    "Tag a capability",
    "Put a version tag (`version_tag`) on the version that `name` selects, or add tags to the "
    f"capability and remove some. {_OWNERS}",
    TagRecord,
)
YANK: Final = _change(
    "yank",
    "Yank a version",
    "Advise against a version: it is not the latest any more, and is found only where it is named "
    f"exactly. {_OWNERS}",
    YankVersion,
    CHANGES,
)
UNYANK: Final = _change(
    "unyank", "Take back a yank", f"Take back the yank of a version. {_OWNERS}", UnyankVersion
)
VISIBILITY: Final = _change(
    "visibility",
    "Set who sees a capability",
    f"Show a capability to its owner, project, organisation or everyone. {_OWNERS}",
    ChangeVisibility,
    CHANGES,
)
TRANSFER: Final = _change(
    "transfer",
    "Give a capability away",
    f"Give a capability to another owner. {_OWNERS}",
    TransferRecord,
    CHANGES,
)

DNS: Final[Sequence[StdTool[Any]]] = (
    LOOKUP,
    QUERY,
    WHOIS,
    HISTORY,
    FORK,
    MERGE,
    RENAME,
    DESCRIBE,
    TAG,
    YANK,
    UNYANK,
    VISIBILITY,
    TRANSFER,
)
"""All of them."""
