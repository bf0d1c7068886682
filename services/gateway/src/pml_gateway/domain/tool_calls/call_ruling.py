"""Rulings on tool calls of a run: the gateway's enforcement of its grant."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from pydantic import JsonValue

from pml_common.binding.fit import ActualCall, Binding
from pml_common.contracts.decision import Policy
from pml_common.contracts.gateway import CallTool
from pml_common.contracts.grant import Grant
from pml_common.contracts.tool import ToolDefinition, args_hash
from pml_gateway.domain.workflow.verdicts import Verdicts
from pml_gateway.domain.workflow.workflow_state import Workflow

MOST_KEPT: Final = 8 * 2**20
"""Characters of results that are kept per run, to compare references with."""


@dataclass(frozen=True)
class Ruling:
    """Why a call is not made: it is refused, or a person may be asked to approve it."""

    status: Literal["refused", "ask"]
    why: str


@dataclass
class Run:
    """An active run of a principal, with what its calls are checked against: its grant, and the
    results of its calls so far, by node."""

    principal: str
    grant: Grant
    digest: str
    policy: Policy
    binding: Binding
    results: dict[str, list[JsonValue]] = field(default_factory=dict[str, list[JsonValue]])
    kept: int = 0

    def keep(self, node_id: str, result: JsonValue, size: int) -> None:
        """Keep a result if calls may be compared with it; what exceeds the bound is looked up in
        the ledger."""
        if self.grant.bound and self.kept + size <= MOST_KEPT:
            self.kept += size
            self.results.setdefault(node_id, []).append(result)


def run_of(workflow: Workflow) -> Run | None:
    """Return the active run of a workflow; None without one."""
    grant = workflow.grant
    if workflow.state != "running" or workflow.error is not None or grant is None:
        return None
    requested = workflow.requested
    binding = Binding(grant, requested.args)
    return Run(requested.principal, grant, grant.digest(), requested.policy, binding)


@dataclass(frozen=True)
class Listed:
    """A tool as its server lists it now; None if it does not, or if the tool is held back, as
    `withheld` explains."""

    tool: ToolDefinition | None
    definition_hash: str | None
    withheld: str | None = None


def ruling(
    run: Run,
    call: CallTool,
    listed: Listed,
    present: Policy,
    results: Callable[[str], Sequence[JsonValue]],
) -> Ruling | None:
    """Return why a call of a run is not made, or None if it may be."""
    made = ActualCall(call.node_id, call.occurrence, call.tool, call.args, args_hash(call.args))
    granted = run.binding.definition_hash(made)
    why = _not_as_granted(run, call, listed, granted)
    if why is not None or listed.tool is None:
        return Ruling("refused", why or f"{call.tool} is no longer listed")
    policies = (run.policy,) if run.policy == present else (run.policy, present)
    verdicts = Verdicts(policies, {call.tool: listed.tool})
    verdict, reason = verdicts.on(call.tool, call.args, is_all=True) or ("deny", "")
    if verdict == "deny":
        return Ruling("refused", f"the policy forbids this call of {call.tool}: {reason}")
    if granted is None:
        return Ruling("ask", f"{call.tool} was not seen when the program was analysed")
    if verdict == "allow" and not run.binding.is_source(made):
        return None
    if verdict == "ask" and not run.binding.is_approved(made):
        return Ruling("ask", f"{call.tool} was not approved before the run. {reason}")
    misfit = run.binding.mismatch(made, results, beside_mocks=run.grant.dry_run)
    return None if misfit is None else Ruling("ask", misfit)


def direct_ruling(call: CallTool, listed: Listed, present: Policy) -> Ruling | None:
    """Return why a call that the policy allowed its caller is not made, or None if it may be."""
    if listed.tool is None:
        gone = f"{call.tool} is no longer there: its server does not list it"
        return Ruling("refused", listed.withheld or gone)
    verdict, reason = present.verdict_on(listed.tool, call.args, is_all=True)
    if verdict == "allow":
        return None
    return Ruling("refused", f"the policy does not allow this call of {call.tool} now: {reason}")


def _not_as_granted(run: Run, call: CallTool, listed: Listed, granted: str | None) -> str | None:
    """Return why a tool is not what was granted, or None."""
    if listed.definition_hash is None:
        gone = f"{call.tool} is no longer there: its server does not list it"
        return listed.withheld or gone
    if granted is not None and granted != listed.definition_hash:
        return f"{call.tool} has changed since it was allowed; run the program again to decide anew"
    read_only = listed.tool is not None and bool(listed.tool.annotations.read_only)
    if run.grant.dry_run and not read_only:
        return f"{call.tool} is not marked read-only: a dry run does not call it"
    return None


def with_results(
    run: Run, more: Mapping[str, Sequence[JsonValue]]
) -> Callable[[str], Sequence[JsonValue]]:
    """Return a function from a node to its results: those kept, and `more` that were looked up."""
    return lambda node_id: (*run.results.get(node_id, ()), *more.get(node_id, ()))
