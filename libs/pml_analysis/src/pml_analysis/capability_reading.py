"""The calls of a capability's own program, analysed like any program."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from pml_analysis.arguments.arguments import ArgumentsTooLarge
from pml_analysis.decision.capabilities import Capability
from pml_analysis.names.scopes import resolve_scopes
from pml_analysis.nodes import nodes_of
from pml_analysis.rules.forbidden import forbidden
from pml_analysis.running.listed_names import paths_of
from pml_analysis.running.normal_form import code_hash
from pml_analysis.running.program_shape import ProgramShape, program_shape
from pml_analysis.semantic_model import (
    SemanticModel,
    ambiguous_arguments,
    argument_reader,
    build_model,
    instrumented,
)
from pml_analysis.structure.expansion import TooManyNodes
from pml_analysis.syntax.parser import TooBroken, TooDeep, parse, view
from pml_analysis.syntax.source import Source
from pml_analysis.syntax.tree import Node, Tree
from pml_analysis.text.limits import DEFAULT_LIMITS, TOO_BROKEN, Limits, unreadable
from pml_analysis.text.problems import Problem
from pml_analysis.text.syntax_errors import syntax_errors
from pml_common.contracts.capability import CapabilityDescription
from pml_common.contracts.structure import CapabilityNode, TaskNode

_MAX_LENGTH: Final = 200


def read_capability(about: CapabilityDescription, limits: Limits = DEFAULT_LIMITS) -> Capability:
    """Return a capability with all its calls; with a fault if its program does not parse."""
    source = Source(about.code)
    problems = unreadable(about.code, limits) or _misspelt(source)
    if problems:
        return _faulty(about, source, problems)
    try:
        tree = view(parse(source), source, nesting=limits.nesting)
        return _read(about, tree, limits)
    except TooDeep as error:
        return _faulty(about, source, [Problem(error.offset, "It nests too deep.")])
    except TooManyNodes as error:
        return _faulty(about, source, [Problem(error.offset, "It has too many nodes.")])
    except ArgumentsTooLarge as error:
        return _faulty(about, source, [Problem(error.offset, "Its calls are given too much.")])


def code_hash_of(code: str) -> str | None:
    """Return the hash of a program's normal form, as in `Analysis.code_hash`, from its text alone;
    None for a text that is no program."""
    tree = tree_of(code)
    return None if tree is None else code_hash(tree, resolve_scopes(tree))


def shape_of(code: str) -> ProgramShape | None:
    """Return the shape of a program, from its text alone; None for a text that is no program."""
    tree = tree_of(code)
    return None if tree is None else program_shape(tree, resolve_scopes(tree))


def tree_of(code: str) -> Tree | None:
    """Parse a program, whatever its length; None for a text that is no program."""
    source, limits = Source(code), replace(DEFAULT_LIMITS, source_bytes=len(code.encode()) + 1)
    if unreadable(code, limits) or _misspelt(source):
        return None
    try:
        return view(parse(source), source, nesting=limits.nesting)
    except TooDeep:
        return None


def _misspelt(source: Source) -> list[Problem]:
    try:
        raw = parse(source)
    except TooBroken as error:
        return [Problem(error.offset, TOO_BROKEN)]
    return syntax_errors(raw, source) if raw.root_node.has_error else []


def _read(about: CapabilityDescription, tree: Tree, limits: Limits) -> Capability:
    model = build_model(tree, limits)
    calls, ambiguous = model.calls, ambiguous_arguments(model)
    problems = [*forbidden(tree, model.scopes, model.origins), *calls.problems]
    problems += [each.problem for each in calls.by_one_name]
    problems += [] if ambiguous is None else [ambiguous]
    if problems:
        return _faulty(about, tree.source, problems)
    tools = ((site.server, site.tool) for site in calls.sites if site.capability is None)
    named = (site.capability for site in calls.sites if site.capability is not None)
    return Capability(
        about,
        tools=tuple(dict.fromkeys(tools)),
        references=tuple(dict.fromkeys(named)),
        dynamic=tuple(_expression(tree, node) for node in calls.dynamic),
        nodes=_nodes(model, limits),
        runs=instrumented(model),
        lists=paths_of(model.listings),
    )


def _nodes(model: SemanticModel, limits: Limits) -> tuple[TaskNode | CapabilityNode, ...]:
    """Return its calls, in source order. Raises ArgumentsTooLarge."""
    reader = argument_reader(model, limits)
    found = nodes_of(model.tree, model.calls, model.expansion, reader)
    return tuple(node for node in found if isinstance(node, TaskNode | CapabilityNode))


def _faulty(
    about: CapabilityDescription, source: Source, problems: Sequence[Problem]
) -> Capability:
    first = min(problems, key=lambda problem: problem.offset)
    line, _ = source.position(first.offset)
    return Capability(about, fault=f"on line {line} of its program: {first.message}")


def _expression(tree: Tree, node: Node) -> str:
    return " ".join(tree.text(node)[:_MAX_LENGTH].split())
