"""Requests to execute and their responses, the same over REST and MCP."""

import hashlib
import json
from typing import Annotated, Final, Literal, Self
from uuid import UUID

from pydantic import (
    AfterValidator,
    AliasChoices,
    AwareDatetime,
    Field,
    JsonValue,
    StringConstraints,
)

from pml_common.contracts.base import Contract
from pml_common.contracts.capability import WholeTag
from pml_common.contracts.decision import DryRun
from pml_common.contracts.display_names import PATTERN, parse_display_name
from pml_common.contracts.error import WorkflowError
from pml_common.contracts.registry import DiscoveryHit
from pml_common.contracts.structure import Argument, Diagnostic
from pml_common.contracts.tool import JsonObject
from pml_common.contracts.trace import LogLine
from pml_gateway.domain.api.calls import CallCounts, TaskAnswer
from pml_gateway.domain.api.errors import InvalidRequest
from pml_gateway.domain.api.next_step import Next
from pml_gateway.domain.api.request import Request
from pml_gateway.domain.api.shown_calls import ShownCall
from pml_gateway.domain.api.speculation import SpeculationNote
from pml_gateway.domain.sources.dag_source import (
    Dag,
    ToolId,
    ToolSource,
    layers_of,
    program_of_dag,
    program_of_tool,
)

Intent = Annotated[str, StringConstraints(min_length=1, max_length=4000)]
IdempotencyKey = Annotated[str, StringConstraints(pattern=r"^[\x21-\x7e]{1,200}$")]
"""Printable ASCII without spaces."""
NewName = Annotated[
    str,
    AfterValidator(lambda text: str(parse_display_name(text))),
    Field(json_schema_extra={"pattern": PATTERN}),
]
"""A display name for a capability that does not have it yet; the pattern is for clients' forms, the
parser's errors say which part is wrong."""

_SOURCES: Final = ("code", "dag", "tool", "capability")
_NO_LAYERS: Final = (
    "is for a dag: only a dag has layers; send the calls as one, or omit this and let the policy "
    "ask for tools"
)

Mode = Literal["direct", "by_name", "speculate", "suggest"]
Detail = Literal["calls", "tasks"]
Status = Literal["success", "error", "approval_required", "suggestions", "running"]


class ExecuteRequest(Request):
    """Run one of `code`, `dag`, `tool` or `capability`; with none of them and `context`, what
    serves `intent` best; without that, return suggestions for `intent`."""

    intent: Intent | None = Field(
        default=None, description="Purpose of the program, in a sentence; it is searchable later."
    )
    code: Annotated[str, StringConstraints(min_length=1)] | None = Field(
        default=None,
        description="TypeScript: the body of an async function. It ends with `return <result>`.",
    )
    name: NewName | None = Field(
        default=None,
        description="Name to store the program under: namespace:action, as `fs:ensure_file`.",
    )
    update: bool = Field(
        default=False,
        description="Where other code of yours has the name: make this program its next version "
        "once it has succeeded.",
    )
    version_tag: WholeTag | None = Field(
        default=None, description="Tag of that version, as `v1.2.0`; for update."
    )
    change_summary: Annotated[str, StringConstraints(max_length=2000)] | None = Field(
        default=None, description="What that version changes, in a sentence; for update."
    )
    dag: Dag | None = Field(
        default=None,
        description="Calls instead of code; calls that do not depend on each other are made in "
        "parallel. The result is every task's output by its id.",
    )
    tool: ToolSource | None = Field(
        default=None,
        description="One tool instead of code: called with default_args, overridden by args.",
    )
    capability: Annotated[str, StringConstraints(min_length=1, max_length=256)] | None = Field(
        default=None, description="Name or id of a capability to run instead of code."
    )
    args: JsonObject | None = Field(
        default=None,
        description="Arguments: `args` in the code; each is also the value of a variable of its "
        "name that the code does not declare.",
    )
    context: JsonObject | None = Field(
        default=None,
        description="With an intent alone: values by name, for the parameters of the capability "
        "that serves it best, which is run if it fits well and needs no approval. Else a synonym "
        "of args.",
    )
    discovery_id: UUID | None = Field(
        default=None, description="`discovery_id` of the pml_discover answer that led to this call."
    )
    idempotency_key: IdempotencyKey | None = Field(
        default=None,
        description="Runs the request only once: the same key again returns the first response.",
    )
    fresh: bool = Field(
        default=False,
        description="Ask for another run, also where the same call waits for an approval, or was "
        "approved and its result is not fetched yet; without it this call joins that one.",
    )
    timeout: float | None = Field(
        default=None, gt=0, description="Seconds that the program may run."
    )
    per_layer_validation: bool = Field(
        default=False,
        description="For a dag: between layers, before one with a tool that is not read-only or "
        "needs approval, the run waits for a person, who sees what was done and what comes next.",
    )
    dry_run: bool = Field(
        default=False,
        validation_alias=AliasChoices("dry_run", "dryRun"),
        description="Try the program: tools that are not marked read-only are mocked and need no "
        "approval; nothing is learned.",
    )
    dry_run_mocks: dict[ToolId, JsonValue] | None = Field(
        default=None,
        validation_alias=AliasChoices("dry_run_mocks", "dryRunMocks"),
        description="Results of mocked tools, by `server:tool`: a value, or a list of values for "
        "successive calls. By default {success: true, mocked: true}.",
    )

    detail: Detail = Field(
        default="calls",
        description="`tasks`: the answer has every tool call of the run, not just those that "
        "failed or that a person approved.",
    )

    @property
    def arguments(self) -> JsonObject:
        """The program's arguments, from `args` or `context`."""
        return self.args or self.context or {}


def request_hash(request: ExecuteRequest) -> str:
    """Return the SHA-256 of all fields but the idempotency key, the discovery and the detail of the
    answer; requests under one key must have the same."""
    without = {"idempotency_key", "discovery_id", "detail"}
    fields = request.model_dump(mode="json", exclude=without, exclude_defaults=True)
    content = json.dumps(fields, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(content.encode()).hexdigest()


def dry_run_of(request: ExecuteRequest) -> DryRun | None:
    """Return the settings of a dry run; None if the request is not for one."""
    return DryRun(mocks=request.dry_run_mocks or {}) if request.dry_run else None


def validated_layers(request: ExecuteRequest) -> tuple[tuple[str, ...], ...]:
    """Return the ids of a DAG's tasks by layer if a person has to approve between layers."""
    if request.dag is None or not request.per_layer_validation:
        return ()
    return tuple(tuple(task.id for task in layer) for layer in layers_of(request.dag))


def program_of(request: ExecuteRequest) -> str | None:
    """Return the request's program, built from `dag` or `tool` if needed. Raises InvalidRequest."""
    if request.dag is not None:
        return program_of_dag(request.dag)
    if request.tool is not None:
        return program_of_tool(request.tool)
    return request.code


def mode_of(request: ExecuteRequest, max_timeout_s: float) -> Mode:
    """Return the request's mode. Raises InvalidRequest that names the field at fault."""
    if request.args is not None and request.context is not None:
        raise InvalidRequest("context", "is a synonym of args: give only one of them")
    if request.timeout is not None and request.timeout > max_timeout_s:
        raise InvalidRequest("timeout", f"is more than the maximum of {max_timeout_s:g} seconds")
    if request.dry_run_mocks is not None and not request.dry_run:
        raise InvalidRequest("dry_run_mocks", "is for a dry run: set dry_run, too")
    if request.per_layer_validation and request.dag is None:
        raise InvalidRequest("per_layer_validation", _NO_LAYERS)
    source = _source_of(request)
    if request.name is not None and source in (None, "capability"):
        raise InvalidRequest("name", "is for code, a dag or a tool; capability runs a stored one")
    _require_name_for_version(request)
    if source is not None:
        return "by_name" if source == "capability" else "direct"
    if request.intent is None:
        raise InvalidRequest(
            "code", "is missing: give code, dag, tool or capability, or at least an intent"
        )
    return "suggest" if request.args is None and request.context is None else "speculate"


def _require_name_for_version(request: ExecuteRequest) -> None:
    """Raise InvalidRequest where what is said of a next version has nothing to stand for."""
    if request.update and request.name is None:
        raise InvalidRequest("update", "is for a name: give the one that gets the next version")
    for field in ("version_tag", "change_summary"):
        if getattr(request, field) is not None and not request.update:
            raise InvalidRequest(field, "is for a next version: set update, too")


def _source_of(request: ExecuteRequest) -> str | None:
    """Return the field that gives the program, if any. Raises InvalidRequest if there are two."""
    given = [field for field in _SOURCES if getattr(request, field) is not None]
    if len(given) > 1:
        one, other = given[:2]
        raise InvalidRequest(other, f"cannot be combined with {one}: give only one of them")
    return given[0] if given else None


def _is_none(value: object) -> bool:
    return value is None


class PlannedCall(Contract):
    """A call site with the known parts of its arguments; `tool` is `cap:<name>` for a call of a
    capability."""

    node_id: str
    tool: str
    line: int | None
    column: int | None
    arguments: dict[str, Argument]


class DoneTask(Contract):
    """A task of the layer that ended; `preview` is the start of its result."""

    task: str
    node_id: str
    tool: str
    preview: str


class NextTask(PlannedCall):
    """A task of the next layer, with the known values of its arguments filled in. `elevated`: it is
    not read-only, or needs approval."""

    task: str
    elevated: bool


class LayerAsked(Contract):
    """An approval between two layers of a DAG: `number` is the layer that waits, from 1; `of` the
    number of layers; `done` the layer before it."""

    number: int
    of: int
    done: tuple[DoneTask, ...]
    next: tuple[NextTask, ...]


class ApprovalAsked(Contract):
    """A pending approval: what would run, and why a person must approve; `tools` are those that
    need approval. `code` is the text that runs, where the program was changed before its analysis,
    as `notices` of the answer say; a long one is cut. `begun`: the run is parked, at calls or, with
    `layer`, between two layers. Long texts in `calls` are truncated and `more_calls` calls omitted;
    `whole_at` is the path of the whole."""

    id: UUID
    reasons: tuple[str, ...]
    tools: tuple[str, ...]
    code: str | None = Field(default=None, exclude_if=_is_none)
    calls: tuple[ShownCall, ...]
    more_calls: int = 0
    shown_digest: str
    whole_at: str
    begun: bool = False
    layer: LayerAsked | None = None
    expires_at: AwareDatetime


class ResultPage(Contract):
    """A part of a result as text; `offset`, `total` and `next_offset` count its characters."""

    text: str
    offset: int
    total: int
    next_offset: int | None = None


class ExecuteResponse(Contract):
    """State of an execution, with the fields that belong to its status. `cached`: nothing ran; the
    result is that of an earlier workflow with the same capability and arguments. `discovery_id` is
    that of the suggestions, for the execution that follows; `speculation` tells what was run for an
    intent and a context, or why nothing was; `degraded`: they were found by words alone. `logs` are
    the last lines of the program's console, after `logs_omitted` others. `calls` counts the tool
    calls of the run, `tasks` has those that failed or that a person approved, or all. `notices` say
    what the caller should know or change: a former name of the capability, a yanked version,
    unknown arguments, a program that was changed before it ran, parts of the result that JSON
    cannot say, lines of the console that are left out; `warnings` are what the analysis doubts in
    the program. `next` is the way on to the result where the workflow has not ended. `task` is the
    one whose result was asked for; `page` is in place of a result that was asked for in parts, or
    of the console. `joined`: the workflow is that of an earlier, equal call."""

    status: Status
    result: JsonValue = None
    suggestions: tuple[DiscoveryHit, ...] = ()
    discovery_id: UUID | None = None
    speculation: SpeculationNote | None = None
    degraded: bool = False
    capability_id: UUID | None = None
    capability_name: str | None = None
    workflow_id: UUID | None = None
    dry_run: bool = False
    cached: bool = False
    joined: bool = False
    calls: CallCounts | None = None
    tasks: tuple[TaskAnswer, ...] = ()
    logs: tuple[LogLine, ...] = ()
    logs_omitted: int = 0
    error: WorkflowError | None = None
    approval: ApprovalAsked | None = None
    notices: tuple[str, ...] = ()
    next: Next | None = None
    task: TaskAnswer | None = None
    page: ResultPage | None = None
    warnings: tuple[Diagnostic, ...] = ()

    def brief(self, detail: Detail = "calls") -> Self:
        """Leave out the calls that succeeded by themselves, unless all are asked for."""
        if detail == "tasks" or not self.tasks:
            return self
        told = tuple(
            task for task in self.tasks if not task.success or task.approved or task.mocked
        )
        return self.model_copy(update={"tasks": told})

    def with_notices(self, *notices: str) -> Self:
        """Return the response with more notices, none of them twice."""
        if not notices:
            return self
        all_notices = tuple(dict.fromkeys((*self.notices, *notices)))
        return self.model_copy(update={"notices": all_notices})

    def to_json(self) -> str:
        """Return the JSON of the response, without fields that were not set."""
        return self.model_dump_json(include=self.model_fields_set)
