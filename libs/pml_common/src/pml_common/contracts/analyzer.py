"""What the analyzer owns: the reading of a program before it runs."""

from typing import Literal
from uuid import UUID

from pml_common.contracts.base import Event
from pml_common.contracts.capability import (
    CapabilityIdentity,
    InjectedCapability,
    NestedCapability,
)
from pml_common.contracts.decision import Decision
from pml_common.contracts.structure import Diagnostic, DynamicCall, StaticStructure
from pml_common.contracts.tool import JsonObject


class ExecutionAnalyzed(Event):
    """A program was understood.

    `instrumented` is what runs: `code` with node ids at its calls and outcomes at its decisions.
    `insertions` are the spans `[start, end)` of it, in code points and in order, that the author
    did not write: without them it is `code`. `capabilities` are all that it reaches through calls,
    `injected` the same as they run.
    """

    workflow_id: UUID
    principal: str
    capability: CapabilityIdentity
    intent: str | None = None
    code: str
    instrumented: str
    insertions: tuple[tuple[int, int], ...] = ()
    structure: StaticStructure
    dynamic_calls: tuple[DynamicCall, ...] = ()
    decision: Decision
    capabilities: tuple[NestedCapability, ...] = ()
    injected: tuple[InjectedCapability, ...] = ()
    parameters_schema: JsonObject
    diagnostics: tuple[Diagnostic, ...] = ()
    dry_run: bool = False


class AnalysisRejected(Event):
    """A program cannot run; the diagnostics say where and why.

    `syntax`: it is not TypeScript; `rejected`: it is, but must not run.
    """

    workflow_id: UUID
    kind: Literal["syntax", "rejected"] = "rejected"
    diagnostics: tuple[Diagnostic, ...]
