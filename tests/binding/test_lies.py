"""Every lie changes the analysis and is a valid message."""

from uuid import UUID

import pytest

from pml_analysis.analysis import Analysis
from pml_common.contracts.analyzer import ExecutionAnalyzed
from pml_common.contracts.capability import CapabilityIdentity
from pml_common.contracts.scope import Scope
from tests.binding.generated import understood
from tests.binding.lies import LIES, Lie

CODE = """const seen = await mcp.fs.read({ v: 1 });
await mcp.fs.write({ v: "/safe", w: args.a, x: [seen.a, { b: seen.k }] });
for (const one of args.rows) await capabilities.lib_put({ v: one });"""
NEVER_ASKED = ("fs:read",)


@pytest.fixture
def truth() -> ExecutionAnalyzed:
    """The real analysis."""
    analysis = understood(CODE)
    assert isinstance(analysis, Analysis)
    tools = tuple(
        one.model_copy(update={"verdict": "allow"}) if one.tool in NEVER_ASKED else one
        for one in analysis.decision.tools
    )
    return ExecutionAnalyzed(
        event_id=UUID(int=1),
        scope=Scope(org="local", project="default"),
        workflow_id=UUID(int=2),
        principal="local",
        capability=CapabilityIdentity(
            capability_id=UUID(int=3), code_hash=analysis.code_hash, name=None
        ),
        code=CODE,
        instrumented=analysis.instrumented,
        insertions=analysis.insertions,
        structure=analysis.structure,
        decision=analysis.decision.model_copy(update={"tools": tools}),
        capabilities=analysis.capabilities,
        injected=analysis.injected,
        parameters_schema=analysis.parameters_schema,
    )


@pytest.mark.parametrize("which", LIES)
def test_a_lie_is_a_different_valid_message(which: str, truth: ExecutionAnalyzed) -> None:
    told = LIES[which](Lie(truth, "return 1;"))
    assert told != truth
    assert ExecutionAnalyzed.model_validate_json(told.model_dump_json()) == told
    assert (told.event_id, told.code) == (truth.event_id, truth.code)
