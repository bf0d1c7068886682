"""One program, run by a person who approves what is shown, once; each call at which the run parks
is then approved by itself, or not at all."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from tests.binding.attacks import Attack
from tests.binding.expected import Json
from tests.binding.lies import NOT_TAKEN
from tests.binding.oracle import Asked, Oracle, Verdict
from tests.binding.shown import ShownCall, shown_calls
from tests.binding.stage import Lane, Stage

Manner = Literal["agrees", "refuses"]
"""The person's decision on a call at which a run parks."""

MOST_QUESTIONS: Final = 25
TIMEOUT_S: Final = 10.0
ODD: Final = ("internal", "running")
"""Ends that no program should have."""


@dataclass(frozen=True)
class Trial:
    """A program, the lie about it, and the person's manner."""

    attack: Attack
    lie: str | None
    manner: Manner

    @property
    def name(self) -> str:
        """Name for a reader."""
        told = "as it is" if self.lie is None else f"lying: {self.lie}"
        return f"{self.attack.name} ({told}, the person {self.manner})"


@dataclass(frozen=True)
class Result:
    """Result of a trial."""

    trial: Trial
    ended: str
    verdict: Verdict
    questions: int
    odd: tuple[str, ...] = ()

    @property
    def faults(self) -> tuple[str, ...]:
        """Violations."""
        return (*self.verdict.holes, *self.odd)


@dataclass
class _Conversation:
    """The exchange with the deciding person."""

    stage: Stage
    trial: Trial
    shown: list[ShownCall] = field(default_factory=list[ShownCall])
    asked: list[Asked] = field(default_factory=list[Asked])
    questions: int = 0

    async def answered(self, body: Json) -> Json:
        """Decide every approval until the run ends."""
        while body["status"] == "approval_required":
            workflow, approval = body["workflow_id"], body["approval"]
            self.questions += 1
            decision = await self._decision(workflow, approval)
            body = await self.stage.decide(workflow, approval["id"], decision)
        return body

    async def _decision(self, workflow: str, approval: Json) -> str:
        listed = (await self.stage.approval(workflow))["calls"]
        if not approval["begun"]:
            places = {(call["node_id"], call["tool"]) for call in listed}
            told = shown_calls(await self.stage.workflow(workflow))
            self.shown += [one for one in told if (one.node, one.tool) in places]
            return "approve"
        if self.trial.manner == "refuses" or self.questions > MOST_QUESTIONS:
            return "deny"
        self.asked += [
            Asked(call["tool"], _real(call["arguments"]), call["node_id"]) for call in listed
        ]
        return "approve"


def _real(arguments: Sequence[Json]) -> dict[str, Json]:
    """The exact arguments of a waiting call."""
    assert all(one["kind"] == "literal" for one in arguments), arguments
    return {one["name"]: json.loads(one["text"]) for one in arguments}


async def tried(stage: Stage, lane: Lane, trial: Trial) -> Result:
    """Run one program to its end and judge every call that arrived."""
    attack, before = trial.attack, len(lane.arrived())
    intent = None if trial.lie is None else f"lie:{trial.lie}:{lane.text(attack.runs)}"
    request = {"code": lane.text(attack.code), "args": lane_args(lane, attack)}
    conversation = _Conversation(stage, trial)
    timeout_s = 1.0 if trial.lie == NOT_TAKEN else TIMEOUT_S
    body = await conversation.answered(
        await stage.execute(**request, intent=intent, timeout=timeout_s)
    )
    arrived = lane.arrived()[before:]
    bound = [number for number, one in enumerate(arrived) if lane.is_bound(one.tool)]
    verdict = Oracle(conversation.shown, conversation.asked, arrived).verdict(bound)
    kind = body["error"]["kind"] if body["status"] == "error" else body["status"]
    is_odd = kind in ODD and not (kind == "running" and trial.lie == NOT_TAKEN)
    odd = (f"it ended as {kind}: {body.get('error')}",) if is_odd else ()
    return Result(trial, kind, verdict, conversation.questions, odd)


def lane_args(lane: Lane, attack: Attack) -> Json:
    """The program's arguments."""
    return json.loads(lane.text(json.dumps(attack.args)))
