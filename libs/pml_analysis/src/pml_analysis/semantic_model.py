"""The semantic model of a program: all passes up to the nodes, and the instrumented program."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

from pml_analysis.arguments.arguments import ArgumentReader
from pml_analysis.arguments.data_flow import DataFlow
from pml_analysis.arguments.parameter_binding import ParameterBindings
from pml_analysis.names.bindings import Scopes
from pml_analysis.names.builtins import Builtins
from pml_analysis.names.origins import Origins
from pml_analysis.names.scopes import resolve_scopes
from pml_analysis.parameters.parameters import free_parameters
from pml_analysis.running.instrument import (
    RETURNING,
    arguments_name,
    dropped_reports,
    instrument,
    missing_reports,
    prologue,
)
from pml_analysis.running.listed_names import reading_lists
from pml_analysis.running.returned_parts import ReturnedPart
from pml_analysis.structure.calls import Calls, find_calls
from pml_analysis.structure.escapes import add_escapes
from pml_analysis.structure.expansion import Expansion, expand
from pml_analysis.structure.listings import Listing, find_listings
from pml_analysis.structure.marks import Mark, find_marks
from pml_analysis.structure.promises import Promises
from pml_analysis.structure.units import Unit, find_units
from pml_analysis.syntax.edits import Edited
from pml_analysis.syntax.tree import Tree
from pml_analysis.text.limits import Limits
from pml_analysis.text.problems import Problem


@dataclass(frozen=True)
class SemanticModel:
    """A program's names, calls and nodes."""

    tree: Tree
    scopes: Scopes
    origins: Origins
    calls: Calls
    listings: Sequence[Listing]
    units: Sequence[Unit]
    marks: Sequence[Mark]
    expansion: Expansion
    free: Sequence[str]
    """Free names that stand for parameters."""

    @cached_property
    def data(self) -> DataFlow:
        """The data flow pass."""
        return DataFlow(self.origins, self.expansion, self.parameter_bindings)

    @cached_property
    def promises(self) -> Promises:
        """The promises pass."""
        return Promises(self.origins, Builtins(self.origins), self.calls, self.marks)

    @cached_property
    def parameter_bindings(self) -> ParameterBindings:
        """The arguments bound to parameters of local functions."""
        return ParameterBindings(self.origins, self.expansion)


def build_model(tree: Tree, limits: Limits) -> SemanticModel:
    """Run the passes over a tree. Raises TooManyNodes."""
    scopes = resolve_scopes(tree)
    origins = Origins(tree, scopes)
    calls = find_calls(tree, origins)
    listings = find_listings(tree, origins)
    add_escapes(calls, origins, listings)
    units = find_units(tree, scopes)
    expansion = expand(find_marks(tree, origins, calls, units), limit=limits.nodes)
    marks = sorted(chain.from_iterable(expansion.marks.values()), key=lambda mark: mark.node.index)
    free = free_parameters(origins)
    return SemanticModel(tree, scopes, origins, calls, listings, units, marks, expansion, free)


def ambiguous_arguments(model: SemanticModel) -> Problem | None:
    """Return why the caller's arguments cannot be read, if the program needs them."""
    top, origins = model.scopes.top, model.origins
    from_caller = model.free or origins.implicit_roots
    if not from_caller or arguments_name(top) is not None:
        return None
    message = "args and context are both declared: give one of them another name."
    return Problem(top["args"].node.start, message)


def instrumented(model: SemanticModel, returned: Iterable[ReturnedPart] = ()) -> Edited:
    """Build the program that runs, without its lists of tools; `returned` are the parts of results
    that are told if they are missing."""
    whole = arguments_name(model.scopes.top) or ""
    bindings = prologue(model.free, sorted(model.origins.implicit_roots), whole)
    missing = missing_reports(model.tree, returned)
    inserted = [
        *dropped_reports(model.tree, model.promises.dropped()),
        *missing,
        *reading_lists(model.listings),
    ]
    bindings = f"{RETURNING}{bindings}" if missing else bindings
    return instrument(model.tree, model.calls, model.expansion, bindings, inserted)


def argument_reader(model: SemanticModel, limits: Limits) -> ArgumentReader:
    """Build the reader of a program's call arguments."""
    return ArgumentReader(
        model.origins,
        model.expansion,
        model.data,
        model.parameter_bindings,
        limit=limits.argument_characters,
    )
