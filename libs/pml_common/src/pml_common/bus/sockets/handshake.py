"""The handshake: both ends prove with their service's key who they are.

The server sends a nonce; the client replies with one of its own and a signature; the server checks
it and sends its signature. Each signs both nonces, both services and both process ids. Each knows
the other's process id from the kernel, so a process in between, which can pass on what the two ends
sign, is detected: neither end signed its process id.
"""

from dataclasses import dataclass
from secrets import token_hex
from typing import Annotated, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, StringConstraints, ValidationError

from pml_common.bus.identity import Identity
from pml_common.contracts.fault_words import faults_of

M = TypeVar("M", bound=BaseModel)

_PURPOSE = "pml-socket-v1"

Name = Annotated[str, StringConstraints(pattern="^[a-z]{1,40}$")]
Nonce = Annotated[str, StringConstraints(pattern="^[0-9a-f]{64}$")]


class HandshakeFailed(Exception):
    """The other end has not proved that it is the expected service in the expected process."""


class Challenge(BaseModel):
    """The server's first frame."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    service: Name
    nonce: Nonce


class Hello(BaseModel):
    """The client's reply."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    service: Name
    nonce: Nonce
    signature: str


class Welcome(BaseModel):
    """The server's proof; `window` is the number of requests it takes at a time."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    signature: str
    window: int


def new_nonce() -> str:
    """Return 32 random bytes in hex."""
    return token_hex(32)


@dataclass(frozen=True)
class Meeting:
    """The facts that both ends of one connection sign, each as it knows them."""

    client: str
    server: str
    client_pid: int
    server_pid: int
    client_nonce: str
    server_nonce: str

    def content(self, role: Literal["client", "server"]) -> bytes:
        """Build the content that one end signs."""
        pids = f"{self.client_pid}\n{self.server_pid}"
        nonces = f"{self.client_nonce}\n{self.server_nonce}"
        return f"{_PURPOSE}\n{role}\n{self.client}\n{self.server}\n{pids}\n{nonces}".encode()


def hello(challenge: Challenge, meeting: Meeting, identity: Identity) -> Hello:
    """Build the client's reply. Raises HandshakeFailed if another service answers."""
    if challenge.service != meeting.server:
        raise HandshakeFailed(f"the {challenge.service} answers, not the {meeting.server}")
    signature = identity.sign(meeting.client, meeting.content("client"))
    return Hello(service=meeting.client, nonce=meeting.client_nonce, signature=signature)


def welcome(said: Hello, meeting: Meeting, identity: Identity, window: int) -> Welcome:
    """Verify the client's reply and build the server's proof. Raises HandshakeFailed."""
    _require(meeting.client, meeting.content("client"), said.signature, identity)
    signature = identity.sign(meeting.server, meeting.content("server"))
    return Welcome(signature=signature, window=window)


def verify(said: Welcome, meeting: Meeting, identity: Identity) -> None:
    """Verify the server's proof. Raises HandshakeFailed."""
    _require(meeting.server, meeting.content("server"), said.signature, identity)


def parse(model: type[M], payload: bytes) -> M:
    """Parse a frame of the handshake. Raises HandshakeFailed."""
    try:
        return model.model_validate_json(payload)
    except ValidationError as error:
        raise HandshakeFailed(f"no {model.__name__}: {'; '.join(faults_of(error))}") from error


def _require(service: str, content: bytes, signature: str, identity: Identity) -> None:
    fault = identity.fault(service, content, signature)
    if fault is not None:
        raise HandshakeFailed(fault)
