"""Contracts of the analyzer: the analysis of a program before it runs."""

from typing import Literal
from uuid import UUID

from pml_common.contracts.base import Contract, Event, Query
from pml_common.contracts.capability import (
    CapabilityIdentity,
    InjectedCapability,
    NestedCapability,
)
from pml_common.contracts.decision import Decision
from pml_common.contracts.gateway import ExecutionRequested
from pml_common.contracts.source import CapabilitySource
from pml_common.contracts.structure import Diagnostic, DynamicCall, StaticStructure
from pml_common.contracts.tool import JsonObject


class ExecutionAnalyzed(Event):
    """A program was analysed.

    `instrumented` is the text that runs: `code` with node ids at its calls and outcomes at its
    decisions. `insertions` are its spans `[start, end)`, in code points and in order, that the
    author did not write: without them it is `code`. `capabilities` are all that it reaches through
    calls, `injected` the same ones in the form that runs. `source` is that of the request.

    Where the text that a client submitted was changed before the analysis, `submitted_code` is that
    text, and `notices` say what was changed. Positions are those in it: `instrumented` has its
    lines, and `insertions` contain what was inserted into it. An analysis that `reads_catalog`
    depends on tools that it does not name: it lists them, or took a name for theirs.
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
    source: CapabilitySource | None = None
    submitted_code: str | None = None
    notices: tuple[str, ...] = ()
    reads_catalog: bool = False


class AnalysisRejected(Event):
    """A program cannot run; the diagnostics give the positions and reasons.

    `syntax`: it is not valid TypeScript; `rejected`: it is, but must not run.
    """

    workflow_id: UUID
    kind: Literal["syntax", "rejected"] = "rejected"
    diagnostics: tuple[Diagnostic, ...]


class AnalyzeProgram(Query):
    """Analyse the program of a request that is not stored yet; its `args` are of no concern."""

    requested: ExecutionRequested


class ProgramAnalysis(Contract):
    """The analysis of a program, or why it cannot run: one of the two."""

    analyzed: ExecutionAnalyzed | None = None
    rejected: AnalysisRejected | None = None
