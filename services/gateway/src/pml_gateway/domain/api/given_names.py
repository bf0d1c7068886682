"""The name of a program in the answer about its run."""

from pml_common.contracts.references import UNNAMED
from pml_gateway.domain.workflow.workflow import Workflow

Told = tuple[str | None, tuple[str, ...]]
"""A name, and what to tell the caller about it."""


def given_later(wanted: str) -> Told:
    """Answer while the registry does not tell whether the wanted name is given."""
    return None, (
        f"{wanted} is given later: the registry does not answer. Until then the program is called "
        "by its capability_id.",
    )


def told_name(workflow: Workflow, known: str | None) -> Told:
    """Answer with the name that is known; a provisional one is none to a caller who wanted
    another."""
    wanted = wanted_name(workflow)
    if wanted is None or (known is not None and not known.startswith(UNNAMED)):
        return known, ()
    if not workflow.proves_its_program:
        return None, (f"{wanted} was not given to this program, whose run had no result.",)
    if known is None:
        return given_later(wanted)
    return None, (
        f"{wanted} was not given to this program, which has no name: send it under a name "
        "again, or save it under one (learn:save).",
    )


def wanted_name(workflow: Workflow) -> str | None:
    """Return the name that a workflow is to have got: it has succeeded, and was no dry run."""
    requested = workflow.requested
    if workflow.state != "succeeded" or requested.dry_run is not None:
        return None
    return requested.name
