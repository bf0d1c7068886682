"""Proofs of the handshake: what each end must know, and what a process in between cannot forge."""

from dataclasses import replace

import pytest

from pml_common.bus.identity import Identity
from pml_common.bus.sockets.handshake import (
    Challenge,
    HandshakeFailed,
    Hello,
    Meeting,
    Welcome,
    hello,
    new_nonce,
    parse,
    verify,
    welcome,
)
from pml_common.signing import SigningKey, TrustedKeys

KEYS = {name: SigningKey.generate(name) for name in ("executor", "gateway")}
TRUSTED = TrustedKeys(key.public for key in KEYS.values())
EXECUTOR, GATEWAY = (Identity([KEYS[name]], TRUSTED) for name in ("executor", "gateway"))
MEETING = Meeting("executor", "gateway", 11, 22, new_nonce(), new_nonce())
CHALLENGE = Challenge(service="gateway", nonce=MEETING.server_nonce)
SAID = hello(CHALLENGE, MEETING, EXECUTOR)

OTHERS = [
    replace(MEETING, client="analyzer"),
    replace(MEETING, server="registry"),
    replace(MEETING, client_pid=33),
    replace(MEETING, server_pid=33),
    replace(MEETING, client_nonce=new_nonce()),
    replace(MEETING, server_nonce=new_nonce()),
]


def test_both_ends_prove_who_they_are() -> None:
    proof = welcome(SAID, MEETING, GATEWAY, 7)
    assert proof.window == 7
    verify(proof, MEETING, EXECUTOR)


@pytest.mark.parametrize("other", OTHERS)
def test_a_clients_proof_holds_for_one_connection_of_two_processes(other: Meeting) -> None:
    with pytest.raises(HandshakeFailed, match="signature"):
        welcome(SAID, other, GATEWAY, 7)


@pytest.mark.parametrize("other", OTHERS)
def test_a_servers_proof_holds_for_one_connection_of_two_processes(other: Meeting) -> None:
    with pytest.raises(HandshakeFailed, match="signature"):
        verify(welcome(SAID, MEETING, GATEWAY, 7), other, EXECUTOR)


def test_a_servers_proof_is_no_clients_and_the_reverse() -> None:
    both = Identity(KEYS.values(), TRUSTED)
    same = replace(MEETING, client="gateway")
    mirrored = Welcome(signature=hello(CHALLENGE, same, both).signature, window=7)
    with pytest.raises(HandshakeFailed):
        verify(mirrored, same, both)


def test_a_client_proves_nothing_to_another_service() -> None:
    with pytest.raises(HandshakeFailed, match="the registry answers, not the gateway"):
        hello(Challenge(service="registry", nonce=new_nonce()), MEETING, EXECUTOR)


@pytest.mark.parametrize(
    "payload",
    [b"", b"{}", b"\xff", b'{"service": "a\\nb", "nonce": "", "signature": ""}', b"[" * 1000],
)
def test_a_frame_that_is_no_proof_is_refused(payload: bytes) -> None:
    with pytest.raises(HandshakeFailed, match="no Hello"):
        parse(Hello, payload)
