"""The analysis of one program: the passes in their order."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final, Literal

from pml_analysis.arguments.arguments import ArgumentReader, ArgumentsTooLarge
from pml_analysis.arguments.provides import provides_edges
from pml_analysis.decision.capabilities import Library
from pml_analysis.decision.decision import ToolUse, decide
from pml_analysis.decision.toolbox import Toolbox
from pml_analysis.nodes import dynamic_calls, nodes_of
from pml_analysis.parameters.parameters import parameters_schema
from pml_analysis.rules.forbidden import forbidden
from pml_analysis.rules.warnings import warnings
from pml_analysis.running.injected import injected
from pml_analysis.running.listed_names import paths_of, with_lists
from pml_analysis.running.normal_form import code_hash
from pml_analysis.running.returned_parts import ReturnedPart, returned_parts
from pml_analysis.semantic_model import (
    SemanticModel,
    ambiguous_arguments,
    argument_reader,
    instrumented,
)
from pml_analysis.structure.calls import CallSite
from pml_analysis.structure.control_flow import control_flow
from pml_analysis.structure.edge_set import TooManyEdges
from pml_analysis.structure.edges import edges_of
from pml_analysis.structure.expansion import Instance, TooManyNodes
from pml_analysis.structure.marks import Mark
from pml_analysis.submitted import Unreadable, read_program
from pml_analysis.syntax.edits import composed
from pml_analysis.syntax.parser import TooDeep
from pml_analysis.syntax.source import Source
from pml_analysis.text.limits import DEFAULT_LIMITS, EMPTY, TOO_DEEP, Limits
from pml_analysis.text.lone_surrogates import lone_surrogate
from pml_analysis.text.problems import Problem, diagnostic
from pml_common.contracts.capability import InjectedCapability, NestedCapability
from pml_common.contracts.decision import Decision, DryRun, Policy
from pml_common.contracts.structure import (
    CapabilityNode,
    Diagnostic,
    DynamicCall,
    StaticStructure,
    TaskNode,
)
from pml_common.contracts.tool import JsonObject, ToolDefinition
from pml_common.provides.json_schema import Described

MAX_DIAGNOSTICS: Final = 20
NO_CAPABILITIES: Final = Library()


@dataclass(frozen=True)
class Analysis:
    """The analysis of a program that can be decided on."""

    structure: StaticStructure
    dynamic_calls: tuple[DynamicCall, ...]
    diagnostics: tuple[Diagnostic, ...]
    decision: Decision
    capabilities: tuple[NestedCapability, ...]
    injected: tuple[InjectedCapability, ...]
    parameters_schema: JsonObject
    code_hash: str
    code: str
    """The text that was analysed: that of the author, on the same lines, with what `notices`
    tell."""
    inserted: tuple[tuple[int, int], ...]
    """Spans of `code` that are not the author's."""
    written: str | None
    """The text of the author, where `code` without these spans is another."""
    notices: tuple[str, ...]
    reads_catalog: bool
    """Whether it depends on tools that it does not call."""
    instrumented: str
    insertions: tuple[tuple[int, int], ...]
    """Spans of `instrumented` that are not the author's."""
    free: tuple[str, ...]
    """Names that the program uses and nothing declares: the caller's arguments."""

    @property
    def source(self) -> Source:
        """Its `code`, with the author's positions."""
        return Source(self.code, self.inserted, self.written)


@dataclass(frozen=True)
class Rejection:
    """The reasons why a program cannot run. `missing_tools`: the only reason is that tools are
    missing; `missing_capabilities` are those named in it that are missing."""

    diagnostics: tuple[Diagnostic, ...]
    missing_tools: bool = False
    kind: Literal["syntax", "rejected"] = "rejected"
    missing_capabilities: tuple[str, ...] = ()


def analyze(
    code: str,
    *,
    tools: Sequence[ToolDefinition],
    policy: Policy,
    limits: Limits = DEFAULT_LIMITS,
    capabilities: Library = NO_CAPABILITIES,
    known_as: Sequence[str] = (),
    dry_run: DryRun | None = None,
    submitted: bool = False,
) -> Analysis | Rejection:
    """Analyse a program: the body of an async function in TypeScript that calls these tools and
    capabilities. `known_as` are the names of the capability that it is, if it runs as one. Where a
    client `submitted` it, a Markdown fence is taken off, names that tools have at other hosts are
    replaced, and a program that ends without its result is completed.

    Lines and columns count from 1, columns in code points; they are those of the text as given.
    """
    try:
        toolbox = Toolbox(tools, capabilities.definitions)
        read = read_program(code, limits, toolbox.tools.spellings, submitted=submitted)
        known = _Known(toolbox, capabilities, known_as, dry_run, read.notices, read.is_renamed)
        return _refuse(read.model, known) or _describe(read.model, known, policy, limits)
    except Unreadable as error:
        return _rejection(error.source, error.problems, kind=error.kind)
    except (TooDeep, TooManyNodes, ArgumentsTooLarge, TooManyEdges) as error:
        return _rejection(Source(code), [_too_much(error, limits)])


def _too_much(
    error: TooDeep | TooManyNodes | ArgumentsTooLarge | TooManyEdges, limits: Limits
) -> Problem:
    """Describe why a program is too large to read and approve."""
    match error:
        case TooDeep():
            return Problem(error.offset, TOO_DEEP)
        case TooManyNodes():
            message = (
                f"More than {limits.nodes:,} calls and decisions, those of functions counted once "
                "for each way they are invoked: that is too many to approve; split it."
            )
            return Problem(error.offset, message)
        case ArgumentsTooLarge():
            message = (
                f"The arguments of all calls have more than {limits.argument_characters:,} "
                "characters, those in names and functions counted for each call: that is too much "
                "to approve; pass data as args."
            )
            return Problem(error.offset, message)
        case _:
            message = (
                f"There are more paths through this than {limits.edges:,} edges can show: split it."
            )
            return Problem(0, message)


@dataclass(frozen=True)
class _Known:
    """The targets a program may call, its own names, whether it is a dry run, what was changed in
    its text, and whether names of tools were."""

    toolbox: Toolbox
    library: Library
    names: Sequence[str]
    dry_run: DryRun | None
    notices: tuple[str, ...]
    is_renamed: bool


def _refuse(model: SemanticModel, known: _Known) -> Rejection | None:
    """Return everything that stops the program from running."""
    tree, scopes, calls = model.tree, model.scopes, model.calls
    if not tree.root.children:
        return _rejection(tree.source, [Problem(0, EMPTY)])
    refused = [*forbidden(tree, scopes, model.origins), *calls.problems]
    if (ambiguous := ambiguous_arguments(model)) is not None:
        refused.append(ambiguous)
    refused += islice(known.library.problems(calls.sites), MAX_DIAGNOSTICS)
    refused += known.toolbox.servers_called(calls.by_one_name)
    missing = list(islice(known.toolbox.missing(calls.sites), MAX_DIAGNOSTICS))
    missing += islice(known.toolbox.unknown_names(calls.by_one_name), MAX_DIAGNOSTICS)
    missing += islice(known.library.missing_tools_of(calls.sites, known.toolbox), MAX_DIAGNOSTICS)
    if not refused and not missing:
        return None
    rejection = _rejection(tree.source, [*refused, *missing], missing_tools=not refused)
    return replace(rejection, missing_capabilities=known.library.unknown(calls.sites))


def _describe(
    model: SemanticModel, known: _Known, policy: Policy, limits: Limits
) -> Analysis | Rejection:
    """Build the analysis of a program that can be decided on."""
    tree, scopes, origins = model.tree, model.scopes, model.origins
    expansion, calls = model.expansion, model.calls
    toolbox, library = known.toolbox, known.library
    reader = argument_reader(model, limits)
    nodes = library.resolved(toolbox.keyed(nodes_of(tree, calls, expansion, reader)))
    edges = edges_of(control_flow(tree, model.marks), expansion, limit=limits.edges)
    sites = _sites(model)
    edges += provides_edges(sites, origins, model.data, toolbox, limit=limits.edges)
    dynamic = dynamic_calls(tree, calls, reader)
    tasks = [node for node in nodes if isinstance(node, TaskNode)]
    uses, reached = _uses(tasks, sites, toolbox), library.reached(library.uses(nodes))
    nested = library.nested(reached, policy, toolbox)
    called = [node for node in nodes if isinstance(node, TaskNode | CapabilityNode)]
    given = [(toolbox.signature(sites[node.id][0]).inputs, node.arguments) for node in called]
    paths = paths_of(model.listings)
    is_listed = paths or any(one.capability.lists for one in reached)
    offered = toolbox.offered(policy) if is_listed else {}
    marked = instrumented(model, _returned(model, reader, sites, toolbox))
    runs = with_lists(composed(marked, tree.source.inserted), paths, offered)
    needed = {
        site: toolbox.signature(site).inputs
        for site, _ in sites.values()
        if site.capability is None
    }
    parameters = parameters_schema(origins, model.units, given, needed)
    structure = StaticStructure(nodes=nodes, edges=tuple(edges))
    half = lone_surrogate(tree, [structure.model_dump(), parameters])
    if half is not None:
        return _rejection(tree.source, [half])
    return Analysis(
        structure=structure,
        dynamic_calls=dynamic,
        diagnostics=_warned(model, library),
        decision=decide(uses, dynamic, policy, toolbox.tools, reached, known.names, known.dry_run),
        capabilities=nested,
        injected=injected(nested, reached, offered),
        parameters_schema=parameters,
        code_hash=code_hash(tree, scopes),
        code=tree.source.text,
        inserted=tree.source.inserted,
        written=tree.source.written,
        notices=known.notices,
        reads_catalog=known.is_renamed or bool(is_listed),
        instrumented=runs.text,
        insertions=runs.insertions,
        free=(*model.free, *sorted(origins.implicit_roots)),
    )


def _warned(model: SemanticModel, library: Library) -> tuple[Diagnostic, ...]:
    found = [
        *warnings(model.origins, model.calls, model.marks, model.free),
        *islice(library.warnings(model.calls.sites), MAX_DIAGNOSTICS),
    ]
    return tuple(diagnostic(model.tree.source, problem, "warning") for problem in found)


def _sites(model: SemanticModel) -> dict[str, tuple[CallSite, Instance]]:
    """Return the call sites by node id."""
    by_call = {site.call.index: site for site in model.calls.sites}
    return {
        node_id: (by_call[made.by.node.index], made.instance)
        for node_id, made in model.expansion.nodes.items()
        if isinstance(made.by, Mark) and made.by.kind == "call"
    }


def _uses(
    tasks: Sequence[TaskNode], sites: Mapping[str, tuple[CallSite, Instance]], toolbox: Toolbox
) -> list[ToolUse]:
    """Return the called tools, in the order of their first call."""
    found: dict[str, list[TaskNode]] = {}
    for task in tasks:
        found.setdefault(task.tool, []).append(task)
    return [ToolUse(toolbox[sites[calls[0].id][0]], calls) for calls in found.values()]


def _returned(
    model: SemanticModel,
    reader: ArgumentReader,
    sites: Mapping[str, tuple[CallSite, Instance]],
    toolbox: Toolbox,
) -> Sequence[ReturnedPart]:
    """Return the parts of results that the program returns and no schema names."""

    def outputs(node_id: str) -> Described | None:
        site, _ = sites[node_id]
        return None if site.capability is not None else toolbox.signature(site).outputs

    return returned_parts(model.tree, model.expansion, reader.source, outputs)


def _rejection(
    source: Source,
    problems: Sequence[Problem],
    *,
    missing_tools: bool = False,
    kind: Literal["syntax", "rejected"] = "rejected",
) -> Rejection:
    ordered = sorted(problems, key=lambda problem: problem.offset)
    diagnostics = tuple(diagnostic(source, problem) for problem in ordered[:MAX_DIAGNOSTICS])
    return Rejection(diagnostics, missing_tools, kind)
