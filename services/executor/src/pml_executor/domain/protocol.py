"""What executor and sandbox say to each other (the other end: runtime/worker/main.ts)."""

from typing import Annotated, Literal

from pydantic import Field, JsonValue, StringConstraints, TypeAdapter, ValidationError

from pml_common.contracts.base import Contract
from pml_common.contracts.tool import JsonObject
from pml_executor.domain.frames import Frame

_NodeId = Annotated[str, StringConstraints(min_length=1, max_length=1200)]
"""With the way that leads to it through calls of capabilities."""


class Hello(Contract):
    """First words to a new process, before any code but our own exists in it; `worker` is the
    JavaScript that each of its Workers begins with."""

    secret: str
    max_body_bytes: int
    worker: str = ""


class Injected(Contract):
    """A capability that the program may call, by every name in `called_as`."""

    name: str
    called_as: tuple[str, ...]
    code: str


class Pause(Contract):
    """Asks the Worker to say when it has come to the end of what it does now."""

    kind: Literal["pause"] = "pause"


Order = Literal["start", "stop", "check"]
"""What the main isolate is told to do: with its Worker (one at a time, each for one program), and
to show that nobody else reads the process's input: `check` has a nonce, which it returns with one
of its own, and the `start` that follows has that one."""


class Program(Contract):
    """The one program a Worker runs. `seed` is 32 hexadecimal digits; `now` and `past` are Unix
    milliseconds: when the run began, and until when an earlier executor has carried it."""

    kind: Literal["run"] = "run"
    code: str
    capabilities: tuple[Injected, ...] = ()
    args: JsonObject
    seed: str
    now: int
    past: int = 0


class Answer(Contract):
    """How a call ended; `now` is when, and sets the program's clock."""

    kind: Literal["answer"] = "answer"
    id: int
    ok: bool
    value: JsonValue = None
    message: str = ""
    now: int


class CallMade(Contract):
    """The program called a tool; `node` is None where the call site was not seen beforehand,
    `within` the call of a capability that it did so in. Line and column, of the text that runs, are
    told where `node` is not; `module` is the number of the capability whose text that is."""

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


class Left(Contract):
    """That call of a capability returned this value."""

    kind: Literal["left"]
    id: int
    value: JsonValue


class BranchNote(Contract):
    """A decision went one way; `counted`, unless 0, stands for so many times at once."""

    type: Literal["decision"]
    within: int | None = None
    node: _NodeId
    outcome: Annotated[str, StringConstraints(max_length=200)]
    counted: int = Field(default=0, ge=0)


class LoopNote(Contract):
    """A round of a loop began; `counted`, unless 0, stands for so many at once."""

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
    """What needs no answer, in the order it happened."""

    kind: Literal["noted"]
    notes: tuple[Note, ...]


class Returned(Contract):
    """The program ended with this value."""

    kind: Literal["returned"]
    value: JsonValue


class Paused(Contract):
    """The Worker was asked to pause and has said before this all that it was about to say."""

    kind: Literal["paused"]


class Failure(Contract):
    """What was thrown; `call` and `capability` are the calls of a tool and of a capability whose
    error it is, if it is one's. `module` is the capability in whose text the place is, None for
    the program's."""

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


class HostSaid(Contract):
    """What the process's main isolate reports of itself."""

    kind: Literal["ready", "stopped", "checked", "breach", "oversize", "lost", "ended"]
    message: str = ""


ProgramMessage = CallMade | Entered | Left | Failed | Noted | Paused | Returned | Threw
_PROGRAM: TypeAdapter[ProgramMessage] = TypeAdapter(
    Annotated[ProgramMessage, Field(discriminator="kind")]
)


class Breach(Exception):
    """A frame says nothing that a well-behaved sandbox would."""


def host_nonce(nonce: str, said: ProgramMessage | HostSaid | None) -> str:
    """The host's own nonce, in its answer to a `check` with this one. Raises Breach."""
    if isinstance(said, HostSaid) and said.kind == "checked":
        returned, _, own = said.message.partition(" ")
        if returned == nonce and own:
            return own
    raise Breach(f"a check was answered with {said}")


def read(frame: Frame) -> list[ProgramMessage | HostSaid]:
    """The messages in an authenticated frame, one a line. Raises Breach."""
    try:
        if frame.origin == "host":
            return [HostSaid.model_validate_json(frame.body)]
        return [_PROGRAM.validate_json(line) for line in frame.body.split(b"\n")]
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False)[0]["msg"]
        raise Breach(f"the program sent what its interface cannot send: {problem}") from error
