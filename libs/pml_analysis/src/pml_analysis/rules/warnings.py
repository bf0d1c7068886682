"""Warnings pass: code that may run, but likely differs from what its author meant or its reader
sees."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from pml_analysis.names.builtins import Builtins
from pml_analysis.names.globals import GLOBALS
from pml_analysis.names.origins import BOUND_ROOTS, Origins
from pml_analysis.rules.identifiers import escaped_names
from pml_analysis.rules.typos import mistyped_names
from pml_analysis.structure.calls import Calls, CallSite
from pml_analysis.structure.marks import Mark
from pml_analysis.structure.promises import Promises
from pml_analysis.structure.reachability import unreachable_calls
from pml_analysis.syntax.tree import Node
from pml_analysis.text.characters import unseen_characters
from pml_analysis.text.confusables import confusable_character, imitated_name
from pml_analysis.text.problems import Problem

_MAX_WARNINGS: Final = 20


def warnings(
    origins: Origins, calls: Calls, marks: Sequence[Mark], free: Sequence[str]
) -> list[Problem]:
    """Return the warnings, in source order; `free` are the names taken for parameters."""
    tree = origins.tree
    called = [mark.node for mark in marks if mark.kind in ("call", "entry")]
    sorts = (
        Promises(origins, Builtins(origins), calls, marks).problems(),
        unreachable_calls(tree, [*called, *calls.dynamic]),
        mistyped_names(origins, free),
        iter(unseen_characters(tree.raw, tree.source)),
        escaped_names(tree),
        _changed_constants(origins),
        _confusable_names(origins),
        _confusable_tools(calls.sites),
    )
    found = {problem: None for sort in sorts for problem in islice(sort, _MAX_WARNINGS)}
    return sorted(found, key=lambda problem: problem.offset)[:_MAX_WARNINGS]


def _changed_constants(origins: Origins) -> Iterator[Problem]:
    """Return writes to constants, which fail when they are reached."""
    for index in sorted(origins.scopes.written):
        node = origins.tree.nodes[index]
        binding = origins.scopes.binding(node)
        if binding is not None and binding.kind == "const":
            message = f"{binding.name} is const, this fails when reached: declare it with let."
            yield Problem(node.start, message)


def _confusable_names(origins: Origins) -> Iterator[Problem]:
    """Return names that imitate another name of the program."""
    scopes = origins.scopes
    if origins.tree.source.text.isascii():
        return
    named: dict[str, Node] = {}
    for node in [*(binding.node for binding in scopes.bindings), *scopes.free]:
        named.setdefault(origins.tree.name(node), node)
    for name, node in named.items():
        seen = imitated_name(name) if len(name) > 1 else None  # Greek ones are honest
        if seen is not None and (seen in named or seen in GLOBALS or seen in BOUND_ROOTS):
            yield Problem(node.start, f"{name} is not {seen}: it has {confusable_character(name)}.")


def _confusable_tools(sites: Sequence[CallSite]) -> Iterator[Problem]:
    """Return tools whose names imitate others."""
    for site in sites:
        for name in (site.server, site.tool):
            seen = imitated_name(name)
            if seen is not None:
                character = confusable_character(name)
                message = f"{site.tool_id} is not what it looks like: {name} has {character}."
                yield Problem(site.callee.start, message)
