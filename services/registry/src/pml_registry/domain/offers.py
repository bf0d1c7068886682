"""Search results that a policy lets a caller have."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pml_common.contracts.decision import Policy
from pml_common.contracts.tool import ToolAnnotations, ToolDefinition
from pml_registry.domain.ranking import Kind, Ranked


@dataclass(frozen=True)
class Subject:
    """The basis on which a policy judges a result: the tools that it is or uses, with their
    annotations, and of a capability its names and former names."""

    tools: Sequence[ToolDefinition]
    names: Sequence[str] = ()


def offered(
    ranked: Sequence[Ranked], policy: Policy, subjects: Mapping[tuple[Kind, str], Subject]
) -> Sequence[Ranked]:
    """The results that the policy does not deny, in order; those without a subject are omitted."""
    return [
        each
        for each in ranked
        if (subject := subjects.get((each.kind, each.id))) and not _denied(policy, subject)
    ]


def judged_tool(tool_id: str, annotations: ToolAnnotations) -> ToolDefinition:
    """The part of a tool that a policy judges."""
    server, _, name = tool_id.partition(":")
    return ToolDefinition(server=server, name=name, annotations=annotations)


def _denied(policy: Policy, subject: Subject) -> bool:
    verdicts = [policy.verdict_on(tool)[0] for tool in subject.tools]
    return "deny" in [*verdicts, policy.verdict_on_capability(subject.names)[0]]
