"""The tools `learn:*`: names for what was learned, for programs and agents."""

from collections.abc import Sequence
from typing import Any, Final

from pml_common.contracts import catalog
from pml_gateway.adapters.std.tools import ADDS, READS, StdTool
from pml_gateway.domain.api.curation import CurateNames, LiftVariants, SaveProgram

CURATE: Final = StdTool(
    "curate",
    "Name capabilities",
    "Suggest names, with reasons, for capabilities that have none, or give them; show which "
    "capabilities differ by literals alone, and the one program that could take their place.",
    ADDS,
    CurateNames,
    catalog.CURATE,
    lambda asked, origin: asked.query(origin.caller.scope, origin.caller.principal),
)
LIFT: Final = StdTool(
    "lift",
    "Make literals parameters",
    "Make one program of a capability and those that differ from it by literals alone: these "
    "become parameters, by default those of the capability. Nothing is stored.",
    READS,
    LiftVariants,
    catalog.LIFT_CAPABILITY,
    lambda asked, origin: asked.query(origin.caller.scope, origin.caller.principal),
)
SAVE: Final = StdTool(
    "save",
    "Save a program under a name",
    "Give a name to the program of a workflow, or to a capability, that has succeeded, as if it "
    "were run under that name.",
    ADDS,
    SaveProgram,
    catalog.SAVE_CAPABILITY,
    lambda asked, origin: asked.query(origin.caller.scope, origin.caller.principal),
)

LEARN: Final[Sequence[StdTool[Any, Any, Any]]] = (CURATE, LIFT, SAVE)
"""All of them."""
