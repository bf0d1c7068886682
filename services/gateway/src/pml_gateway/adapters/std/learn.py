"""The tools `learn:*`: names for what was learned, for programs and agents."""

from collections.abc import Sequence
from typing import Any, Final

from pml_common.contracts import catalog
from pml_common.contracts.curation import SavedCapability
from pml_common.contracts.learner import Feedback
from pml_gateway.adapters.std.tools import ADDS, READS, Backing, StdTool, asks_as_caller
from pml_gateway.domain.api.curation import CurateNames, LiftVariants, SaveProgram
from pml_gateway.domain.api.introspection import JudgeWorkflow
from pml_gateway.ports import CallOrigin

CURATE: Final = StdTool(
    "curate",
    "Name capabilities",
    "Suggest names, with reasons, for capabilities that have none, or give them; show which "
    "capabilities differ by literals alone, and the one program that could take their place.",
    ADDS,
    CurateNames,
    asks_as_caller(catalog.CURATE, CurateNames.query),
)
LIFT: Final = StdTool(
    "lift",
    "Make literals parameters",
    "Make one program of a capability and those that differ from it by literals alone: these "
    "become parameters, by default those of the capability. Nothing is stored.",
    READS,
    LiftVariants,
    asks_as_caller(catalog.LIFT_CAPABILITY, LiftVariants.query),
)


async def _save(
    backing: Backing, asked: SaveProgram, origin: CallOrigin, timeout_s: float
) -> SavedCapability:
    return await backing.composed.save(origin.caller, asked, timeout_s)


SAVE: Final = StdTool(
    "save",
    "Save a program under a name",
    "Give a name to the program of a workflow, or to a capability, that has succeeded, as if it "
    "were run under that name; with `lift` to the one program that it and those that differ from "
    "it by literals alone make.",
    ADDS,
    SaveProgram,
    _save,
)


async def _judge(
    backing: Backing, asked: JudgeWorkflow, origin: CallOrigin, timeout_s: float
) -> Feedback:
    query = asked.asked(origin.caller.scope, origin.caller.principal)
    return await backing.speculations.judge(query, timeout_s)


FEEDBACK: Final = StdTool(
    "feedback",
    "Judge a run",
    "Say whether the run of a workflow served its purpose. Each caller has one opinion of a "
    "workflow: the last one counts. The answer counts all opinions of its capability.",
    ADDS,
    JudgeWorkflow,
    _judge,
)

LEARN: Final[Sequence[StdTool[Any]]] = (CURATE, FEEDBACK, LIFT, SAVE)
"""All of them."""
