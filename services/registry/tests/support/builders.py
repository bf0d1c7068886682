"""Sample messages and records for the registry."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from uuid import uuid4

from pml_common.contracts import ids
from pml_common.contracts.analyzer import ExecutionAnalyzed
from pml_common.contracts.capability import (
    CapabilityIdentity,
    CapabilityRecord,
    Learning,
    PathStats,
    Usage,
)
from pml_common.contracts.decision import Decision
from pml_common.contracts.gateway import ToolsListed
from pml_common.contracts.learner import EdgesObserved, LearningUpdated, ObservedEdge
from pml_common.contracts.scope import Scope
from pml_common.contracts.structure import DecisionNode, StaticStructure, TaskNode
from pml_common.contracts.tool import ToolDefinition
from pml_registry.ports import CodeShape

SCOPE = Scope(org="acme", project="webapp")
ELSEWHERE = Scope(org="rival", project="webapp")
HASH = "a7f3" + "0" * 60
SIMILAR_HASH = "a7f3" + "1" * 60
OTHER_HASH = "c0de" * 16
UNNAMED = "unnamed_a7f3"
AUTHOR = "agent-7"
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def analysed(
    code_hash: str = HASH,
    *,
    name: str | None = None,
    intent: str | None = None,
    scope: Scope = SCOPE,
    tools: Sequence[str] = ("fs:stat", "fs:read"),
    code: str = "return await mcp.fs.read(args)",
    principal: str = AUTHOR,
) -> ExecutionAnalyzed:
    """Build an analysis of code that names this hash, in a workflow of its own."""
    code = code if code_hash == HASH else f"{code}// {code_hash}"
    workflow_id = uuid4()
    tasks = [
        TaskNode(id=f"n{at}", line=at, column=1, tool=tool) for at, tool in enumerate(tools, 1)
    ]
    decision = DecisionNode(id="d1", line=9, column=1, condition="file.exists")
    return ExecutionAnalyzed(
        scope=scope,
        event_id=ids.effect_id(workflow_id, "execution-analyzed"),
        workflow_id=workflow_id,
        principal=principal,
        capability=CapabilityIdentity(
            capability_id=ids.capability_id(scope, code_hash), code_hash=code_hash, name=name
        ),
        intent=intent,
        code=code,
        instrumented=code,
        structure=StaticStructure(nodes=(*tasks, decision)),
        decision=Decision(verdict="allow"),
        parameters_schema={"type": "object", "properties": {"path": {"default": "a\x00b"}}},
    )


class TrustedHashes:
    """Returns the hash that `analysed` gave to each text."""

    async def hash_of(self, code: str) -> str:
        """Return the hash in a comment at the text's end, else HASH."""
        return code.partition("// ")[2] or HASH

    async def shape_of(self, code: str) -> CodeShape:
        """Return a shape of each text's own."""
        return CodeShape(shape_hash=code, makes_calls=True)


def learning_update(
    revision: int = 1,
    *,
    code_hash: str = HASH,
    scope: Scope = SCOPE,
    successes: int | None = None,
    value: tuple[float, float, float] | None = None,
    faults: tuple[int, int] = (0, 0),
    intent: str | None = None,
) -> LearningUpdated:
    """Build the learner's event after `revision` runs, `faults` of them failed by the caller and by
    the environment; `value` is the learned success rate with its interval, `intent` that of the
    first run that succeeded."""
    low, rate, high = value or (None, None, None)
    workflow_id = uuid4()
    succeeded = revision if successes is None else successes
    path = PathStats(path=("n1", "d1"), count=revision, success_rate=0.5, mean_duration_ms=9.0)
    return LearningUpdated(
        scope=scope,
        event_id=ids.effect_id(workflow_id, "learning-updated"),
        capability_id=ids.capability_id(scope, code_hash),
        workflow_id=workflow_id,
        trace_id=ids.root_trace_id(workflow_id),
        revision=revision,
        priority=0.5,
        usage=Usage(
            count=revision,
            success_count=succeeded,
            success_streak=revision if succeeded == revision else 0,
            mean_duration_ms=9.0,
            caller_faults=faults[0],
            environment_faults=faults[1],
            value=rate,
            low=low,
            high=high,
        ),
        learning=Learning(paths=(path,), dominant_path=path.path),
        intent=intent,
    )


def edges(
    *pairs: tuple[str, str], scope: Scope = SCOPE, runs: int = 1, cohort: int = 0
) -> EdgesObserved:
    """Build the event of runs of a cohort with these pairs."""
    workflow_id = uuid4()
    return EdgesObserved(
        scope=scope,
        event_id=ids.effect_id(workflow_id, "edges-observed"),
        capability_id=ids.capability_id(scope, HASH),
        workflow_id=workflow_id,
        edges=tuple(ObservedEdge(from_tool=a, to_tool=b, count=runs) for a, b in pairs),
        runs=runs,
        cohort=cohort,
    )


def tool(tool_id: str, description: str = "") -> ToolDefinition:
    """Build a tool with only a description."""
    server, name = tool_id.split(":", 1)
    return ToolDefinition(server=server, name=name, description=description)


def listed(
    *tools: ToolDefinition,
    server: str = "fs",
    scope: Scope = SCOPE,
    minutes: int | None = None,
) -> ToolsListed:
    """Build a server's complete list, `minutes` after noon."""
    return ToolsListed(
        scope=scope,
        event_id=uuid4(),
        server=server,
        tools=tools,
        listed_at=None if minutes is None else NOON + timedelta(minutes=minutes),
    )


def record(name: str = UNNAMED, description: str = "") -> CapabilityRecord:
    """Build a stored capability, not listed yet."""
    analysis = analysed()
    return CapabilityRecord(
        record_id=ids.record_id(analysis.event_id),
        owner="agent-7",
        capability_id=analysis.capability.capability_id,
        scope=analysis.scope,
        fqdn=name,
        name=name,
        named=":" in name,
        listed=False,
        code=analysis.code,
        code_hash=HASH,
        description=description,
        structure=analysis.structure,
        tools_used=("fs:read",),
        created_by="agent-7",
        created_at=datetime.now(UTC),
        updated_at=datetime.now(UTC),
    )
