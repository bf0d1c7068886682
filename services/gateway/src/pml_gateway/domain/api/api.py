"""What agents ask and are answered, over REST and MCP alike (F2)."""

import hashlib
import json
from typing import Annotated, Final, Literal
from uuid import UUID

from pydantic import (
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    StringConstraints,
)

from pml_common.contracts.base import Contract
from pml_common.contracts.capability import CapabilityName
from pml_common.contracts.decision import DryRun
from pml_common.contracts.error import WorkflowError
from pml_common.contracts.registry import DiscoveryHit
from pml_common.contracts.structure import Argument
from pml_common.contracts.tool import JsonObject
from pml_gateway.domain.api.errors import InvalidRequest
from pml_gateway.domain.api.shown_calls import ShownCall
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

_SOURCES: Final = ("code", "dag", "tool", "capability")
_NO_LAYERS: Final = (
    "is for a dag: only a dag has layers; send the calls as one, or leave this out and have the "
    "policy ask about tools"
)

Mode = Literal["direct", "by_name", "suggest"]
Status = Literal["success", "error", "approval_required", "suggestions", "running"]


class Request(BaseModel):
    """What somebody asks; a field we do not know is a mistake, not noise."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class ExecuteRequest(Request):
    """Run `code`, a `dag` of calls, one `tool`, or the capability known as `capability`; with none
    of them, find what serves `intent`.

    `name` is what the program shall be learned by. `context` is another word for `args`. `timeout`
    is how many seconds the program may run. The same `idempotency_key` never runs it twice. In a
    dry run mocks answer tools that are not read-only, by default `{success: true, mocked: true}`;
    those in `dry_run_mocks` with what it holds: a value, or a list of values for call after call.
    With `per_layer_validation` the run of a `dag` waits for a person between layers that hold a
    tool which is not read-only or needs approval.
    """

    intent: Intent | None = None
    code: Annotated[str, StringConstraints(min_length=1)] | None = None
    name: CapabilityName | None = None
    dag: Dag | None = None
    tool: ToolSource | None = None
    capability: Annotated[str, StringConstraints(min_length=1, max_length=256)] | None = None
    args: JsonObject | None = None
    context: JsonObject | None = None
    idempotency_key: IdempotencyKey | None = None
    timeout: float | None = Field(default=None, gt=0)
    per_layer_validation: bool = False
    dry_run: bool = Field(default=False, alias="dryRun")
    dry_run_mocks: dict[ToolId, JsonValue] | None = Field(default=None, alias="dryRunMocks")

    @property
    def arguments(self) -> JsonObject:
        """What the program is given, under either word."""
        return self.args or self.context or {}


def request_hash(request: ExecuteRequest) -> str:
    """What two requests under one idempotency key must have in common: SHA-256 of the rest."""
    asked = request.model_dump(mode="json", exclude={"idempotency_key"}, exclude_defaults=True)
    content = json.dumps(asked, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(content.encode()).hexdigest()


def dry_run_of(request: ExecuteRequest) -> DryRun | None:
    """How it shall run dry, if it shall."""
    return DryRun(mocks=request.dry_run_mocks or {}) if request.dry_run else None


def validated_layers(request: ExecuteRequest) -> tuple[tuple[str, ...], ...]:
    """The ids of a DAG's tasks by layers, if a person is wanted between them."""
    if request.dag is None or not request.per_layer_validation:
        return ()
    return tuple(tuple(task.id for task in layer) for layer in layers_of(request.dag))


def program_of(request: ExecuteRequest) -> str | None:
    """The program that a request brings, whichever way it says it. Raises InvalidRequest."""
    if request.dag is not None:
        return program_of_dag(request.dag)
    if request.tool is not None:
        return program_of_tool(request.tool)
    return request.code


def mode_of(request: ExecuteRequest, max_timeout_s: float) -> Mode:
    """What is asked for. Raises InvalidRequest that names the field which does not fit."""
    if request.args is not None and request.context is not None:
        raise InvalidRequest("context", "is another word for args: give one of them")
    if request.timeout is not None and request.timeout > max_timeout_s:
        raise InvalidRequest("timeout", f"is more than the {max_timeout_s:g} seconds allowed here")
    if request.dry_run_mocks is not None and not request.dry_run:
        raise InvalidRequest("dryRunMocks", "is for a dry run: give dryRun, too")
    if request.per_layer_validation and request.dag is None:
        raise InvalidRequest("per_layer_validation", _NO_LAYERS)
    source = _source_of(request)
    if request.name is not None and source in (None, "capability"):
        raise InvalidRequest("name", "is for code, a dag or a tool; capability runs a known one")
    if source is not None:
        return "by_name" if source == "capability" else "direct"
    if request.intent is None:
        raise InvalidRequest(
            "code", "is missing: give code, dag, tool or capability, or at least an intent"
        )
    return "suggest"


def _source_of(request: ExecuteRequest) -> str | None:
    """The one field that says what to run. Raises InvalidRequest."""
    given = [field for field in _SOURCES if getattr(request, field) is not None]
    if len(given) > 1:
        one, other = given[:2]
        raise InvalidRequest(other, f"names what to run, and so does {one}: give one of them")
    return given[0] if given else None


class PlannedCall(Contract):
    """One call site, with what is known of its arguments; `tool` is `cap:<name>` where a
    capability is called."""

    node_id: str
    tool: str
    line: int | None
    column: int | None
    arguments: dict[str, Argument]


class DoneTask(Contract):
    """A task of the layer that has ended; `preview` is the head of its result."""

    task: str
    node_id: str
    tool: str
    preview: str


class NextTask(PlannedCall):
    """A task of the layer that comes next, its arguments filled in as far as they are known;
    `elevated`: it may do more than read, or needs approval."""

    task: str
    elevated: bool


class LayerAsked(Contract):
    """Between two layers of a DAG: `number`, from 1, is the one that waits, `of` how many there
    are, `done` the layer before it."""

    number: int
    of: int
    done: tuple[DoneTask, ...]
    next: tuple[NextTask, ...]


class ApprovalAsked(Contract):
    """What would run and why a person must agree; `tools` are those asked for. `begun`: the run
    waits in its midst, at one call or, with `layer`, between two layers. Long texts in `calls` are
    cut; `moreCalls` are left out here, and told with all the rest at `wholeAt`."""

    id: UUID
    reasons: tuple[str, ...]
    tools: tuple[str, ...]
    calls: tuple[ShownCall, ...]
    more_calls: int = Field(default=0, serialization_alias="moreCalls")
    shown_digest: str = Field(serialization_alias="shownDigest")
    whole_at: str = Field(serialization_alias="wholeAt")
    begun: bool = False
    layer: LayerAsked | None = None
    expires_at: AwareDatetime = Field(serialization_alias="expiresAt")


class TaskAnswer(Contract):
    """One tool call of a run; `preview` is the head of its result. `mocked`: nothing was called."""

    id: str
    node_id: str
    tool: str
    success: bool
    duration_ms: float
    preview: str
    mocked: bool = False


class ExecuteResponse(Contract):
    """How an execution stands; only the fields that its status calls for are present. `cached`:
    nothing ran, this is how an earlier workflow of the same capability and arguments ended."""

    status: Status
    result: JsonValue = None
    suggestions: tuple[DiscoveryHit, ...] = ()
    capability_id: UUID | None = Field(default=None, serialization_alias="capabilityId")
    capability_name: str | None = Field(default=None, serialization_alias="capabilityName")
    workflow_id: UUID | None = Field(default=None, serialization_alias="workflowId")
    dry_run: bool = Field(default=False, serialization_alias="dryRun")
    cached: bool = False
    tasks: tuple[TaskAnswer, ...] = ()
    error: WorkflowError | None = None
    approval: ApprovalAsked | None = None

    def to_json(self) -> str:
        """As it is answered: without the fields that were not given."""
        return self.model_dump_json(include=self.model_fields_set)
