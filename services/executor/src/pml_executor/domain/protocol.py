"""Messages between executor and sandbox (the other end: runtime/worker/main.ts)."""

from typing import Annotated, Literal

from pydantic import Field, JsonValue, StringConstraints, TypeAdapter, ValidationError

from pml_common.contracts.base import Contract
from pml_common.contracts.fault_words import faults_of
from pml_common.contracts.tool import JsonObject
from pml_executor.domain.frames import Frame

_NodeId = Annotated[str, StringConstraints(min_length=1, max_length=1200)]
"""Includes the path that leads to the node through calls of capabilities."""


class Hello(Contract):
    """First message to a new process, before any code but our own exists in it; `worker` is the
    JavaScript that each of its Workers for one program starts with, `realm` that of the standing
    Worker of realms."""

    secret: str
    max_body_bytes: int
    worker: str = ""
    realm: str = ""


class Injected(Contract):
    """A capability that the program may call by any name in `called_as`."""

    name: str
    called_as: tuple[str, ...]
    code: str


class Pause(Contract):
    """Requests a `Paused` message once the Worker has finished its current work."""

    kind: Literal["pause"] = "pause"


Order = Literal["start", "realm", "end", "stop", "check"]
"""Orders to the main isolate: `start` and `stop` its Worker (one at a time, each for one program),
start the standing Worker (`realm`) and `end` its present realm, and `check` that nothing else reads
the process's input: `check` carries a nonce, which the host returns with one of its own, and the
`start` or `realm` that follows carries that one. `end` carries a nonce, which the host returns when
the Worker is ready for the next realm."""


class Program(Contract):
    """The only program of a Worker. `seed` is 32 hexadecimal digits; `now` and `past` are Unix
    milliseconds: the run's start, and the last entry of an earlier executor."""

    kind: Literal["run"] = "run"
    code: str
    capabilities: tuple[Injected, ...] = ()
    args: JsonObject
    seed: str
    now: int
    past: int = 0


class Answer(Contract):
    """Outcome of a call; `now` is the time of its end, and sets the program's clock."""

    kind: Literal["answer"] = "answer"
    id: int
    ok: bool
    value: JsonValue = None
    message: str = ""
    now: int


class CallMade(Contract):
    """The program called a tool. `node` is None for a call site that the analysis did not find;
    then line and column, in the text that runs, are given, and `module` is the number of the
    capability whose text that is. `within` is the call of a capability that made the call."""

    kind: Literal["call"]
    id: int = Field(ge=0)
    within: int | None = None
    node: _NodeId | None
    tool: Annotated[str, StringConstraints(min_length=1, max_length=256)]
    args: JsonObject
    line: int | None = None
    column: int | None = None
    module: int | None = None


class Entered(Contract):
    """The program called a capability, by its number among those injected."""

    kind: Literal["entered"]
    id: int = Field(ge=0)
    within: int | None
    node: _NodeId
    capability: int
    args: JsonObject


Lost = Annotated[
    tuple[Annotated[str, StringConstraints(max_length=1000)], ...], Field(max_length=21)
]
"""Sentences about parts of a value that its JSON does not say, by their paths; the last may count
others."""


class Left(Contract):
    """A call of a capability returned this value."""

    kind: Literal["left"]
    id: int
    value: JsonValue
    lost: Lost = ()


class BranchNote(Contract):
    """Outcome of a decision; `counted`, unless 0, is the number of decisions it stands for."""

    type: Literal["decision"]
    within: int | None = None
    node: _NodeId
    outcome: Annotated[str, StringConstraints(max_length=200)]
    counted: int = Field(default=0, ge=0)


class LoopNote(Contract):
    """Start of a round of a loop; `counted`, unless 0, is the number of rounds it stands for."""

    type: Literal["loop"]
    within: int | None = None
    node: _NodeId
    counted: int = Field(default=0, ge=0)


class LogNote(Contract):
    """The program wrote to its console."""

    type: Literal["log"]
    within: int | None = None
    level: Literal["debug", "info", "warn", "error"]
    message: str


Note = Annotated[BranchNote | LoopNote | LogNote, Field(discriminator="type")]


class Noted(Contract):
    """Reports that need no answer, in order."""

    kind: Literal["noted"]
    notes: tuple[Note, ...]


class DroppedPromise(Contract):
    """An expression of the author's whose promise nothing waits for, and which had not settled when
    the program ended; `chain` are the capabilities that lead to its text, empty for the
    program's."""

    line: int
    column: int
    chain: str = ""


Step = str | int | None
"""A step into a result: a key, an index, or any element of a list."""


class ReturnedPart(Contract):
    """An expression of the author's, by its text and place, that was undefined and gave the program
    its value: the part at `path` of the result of a node's call."""

    node: _NodeId
    path: tuple[Step, ...]
    text: str
    line: int
    column: int


class Returned(Contract):
    """The program ended with this value. Still under way then were the first of its unanswered
    calls, by their numbers, and of its dropped promises. `part` is the one that gave it the value
    undefined, if one did."""

    kind: Literal["returned"]
    value: JsonValue
    lost: Lost = ()
    under_way: tuple[int, ...] = ()
    dropped: tuple[DroppedPromise, ...] = ()
    part: ReturnedPart | None = None


class Paused(Contract):
    """Reply to `Pause`, after all messages that the Worker was about to send."""

    kind: Literal["paused"]


class Failure(Contract):
    """A thrown error; `call` or `capability` is the call of a tool or of a capability that it comes
    from, if any. `module` is the capability in whose text the position is, None for the
    program's."""

    phase: Literal["load", "run"] = "run"
    call: int | None
    capability: int | None = None
    name: str
    message: str
    line: int | None
    column: int | None
    module: int | None = None


class Failed(Failure):
    """A call of a capability ended with an error."""

    kind: Literal["failed"]
    id: int


class Threw(Failure):
    """The program ended with an error."""

    kind: Literal["threw"]


class HostMessage(Contract):
    """Report of the process's main isolate about itself. Of the standing Worker: `unfit` if a
    probe got out of its realm, `unsuited` if a program cannot run in one."""

    kind: Literal[
        "ready", "stopped", "checked", "breach", "oversize", "lost", "ended", "unfit", "unsuited"
    ]
    message: str = ""


ProgramMessage = CallMade | Entered | Left | Failed | Noted | Paused | Returned | Threw
_PROGRAM: TypeAdapter[ProgramMessage] = TypeAdapter(
    Annotated[ProgramMessage, Field(discriminator="kind")]
)


class ProtocolViolation(Exception):
    """A frame is no valid message of the protocol."""


def host_nonce(nonce: str, said: ProgramMessage | HostMessage | None) -> str:
    """Return the host's own nonce from its reply to a `check` with this nonce. Raises
    ProtocolViolation."""
    if isinstance(said, HostMessage) and said.kind == "checked":
        returned, _, own = said.message.partition(" ")
        if returned == nonce and own:
            return own
    raise ProtocolViolation(f"a check was answered with {said}")


def parse_frame(frame: Frame) -> list[ProgramMessage | HostMessage]:
    """Parse the messages in an authenticated frame, one per line. Raises ProtocolViolation."""
    try:
        if frame.origin == "host":
            return [HostMessage.model_validate_json(frame.body)]
        return [_PROGRAM.validate_json(line) for line in frame.body.split(b"\n")]
    except ValidationError as error:
        problem = faults_of(error)[0]
        raise ProtocolViolation(
            f"the program sent what its interface cannot send: {problem}"
        ) from error
