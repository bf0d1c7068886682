"""Capabilities for analyses of programs."""

from uuid import UUID, uuid5

from pml_analysis.analysis import Analysis, Rejection, analyze
from pml_analysis.capability_reading import read_capability
from pml_analysis.decision.capabilities import Library
from pml_common.contracts.capability import CapabilityDescription
from pml_common.contracts.decision import Policy
from pml_common.contracts.registry import Reference
from pml_common.contracts.structure import CapabilityNode
from pml_common.contracts.tool import JsonObject
from services.analyzer.tests.support.programs import TOOLS

_NAMES = UUID("5b2c7c3e-5f0a-5d0e-9d53-3a1f0f3f5c11")


def described(
    name: str, code: str, *aliases: str, takes: JsonObject | None = None
) -> CapabilityDescription:
    """Build a capability's description as the registry sends it."""
    return CapabilityDescription(
        capability_id=uuid5(_NAMES, name),
        name=name,
        aliases=aliases,
        code=code,
        code_hash=uuid5(_NAMES, code).hex * 2,
        parameters_schema=takes or {},
    )


def library(*capabilities: CapabilityDescription) -> Library:
    """Build a library of these capabilities, under all their names."""
    return Library.of([read_capability(one) for one in capabilities])


def meaning(reference: str, about: CapabilityDescription) -> Reference:
    """Build a reference that means this capability."""
    return Reference(reference=reference, capability=about)


READ_JSON = described("fs:read_json", "return JSON.parse(await mcp.fs.read({ path: args.path }));")
REPORT = described(
    "report:weekly", "const all = await capabilities.fs_read_json(args);\nawait mcp.fs.write(all);"
)
PURE = described("math:double", "return 2 * args.x;")
KNOWN = library(READ_JSON, REPORT, PURE)


def calling(code: str, known: Library = KNOWN, policy: Policy | None = None) -> Analysis:
    """Return the analysis of a program that must not be rejected."""
    outcome = analyze(code, tools=TOOLS, policy=policy or Policy(), capabilities=known)
    assert isinstance(outcome, Analysis), outcome
    return outcome


def refused(code: str, known: Library = KNOWN) -> Rejection:
    """Return the rejection of a program that must be rejected."""
    outcome = analyze(code, tools=TOOLS, policy=Policy(), capabilities=known)
    assert isinstance(outcome, Rejection), outcome
    return outcome


def complaint(code: str, known: Library = KNOWN) -> str:
    """Return `line:column message` of the one diagnostic of a rejected program."""
    (told,) = refused(code, known).diagnostics
    return f"{told.line}:{told.column} {told.message}"


def called(analysis: Analysis) -> list[str]:
    """Return `n1 fs:read_json` of every capability node."""
    nodes = [node for node in analysis.structure.nodes if isinstance(node, CapabilityNode)]
    return [f"{node.id} {node.name}" for node in nodes]
