"""Who must approve: policies and the decision taken before anything runs (A11)."""

from typing import Annotated, Literal

from pydantic import StringConstraints

from pml_common.contracts.base import Contract

Verdict = Literal["allow", "ask", "deny"]


class PolicyRule(Contract):
    """`pattern` is a shell-style glob over `server:tool`; the first rule that matches wins."""

    pattern: Annotated[str, StringConstraints(min_length=1)]
    verdict: Verdict


class Policy(Contract):
    """A scope's rules, and what holds where no rule matches."""

    rules: tuple[PolicyRule, ...] = ()
    read_only: Verdict = "allow"
    otherwise: Verdict = "ask"


class ToolDecision(Contract):
    """The verdict on one tool; `definition_hash` is the definition it was given for. Without
    `node_ids`, only calls that are known when they run may reach it."""

    tool: str
    verdict: Verdict
    reason: str
    definition_hash: str
    node_ids: tuple[str, ...]


class Decision(Contract):
    """The verdict on a whole program: the strictest of its tools'.

    `reasons` are sentences a person can approve by.
    """

    verdict: Verdict
    reasons: tuple[str, ...] = ()
    tools: tuple[ToolDecision, ...] = ()
