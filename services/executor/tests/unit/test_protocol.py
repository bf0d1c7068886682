"""Messages of a sandbox, valid and arbitrary; and the command that starts one."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml_executor.domain.frames import Frame
from pml_executor.domain.protocol import (
    BranchNote,
    CallMade,
    HostMessage,
    LogNote,
    LoopNote,
    Noted,
    Paused,
    ProtocolViolation,
    Returned,
    host_nonce,
    parse_frame,
)
from pml_executor.domain.walls import ENVIRONMENT, sandbox_argv


def program(message: object) -> Frame:
    return Frame("program", json.dumps(message).encode())


def test_what_a_program_says_is_read() -> None:
    call = {"kind": "call", "id": 3, "node": None, "tool": "fs:read", "args": {"a": [1, None]}}
    assert parse_frame(program(call)) == [CallMade.model_validate(call)]
    assert parse_frame(program({"kind": "returned", "value": {"x": "é"}})) == [
        Returned(kind="returned", value={"x": "é"})
    ]
    notes = {"kind": "noted", "notes": [{"type": "log", "level": "warn", "message": "!"}]}
    noted = Noted(kind="noted", notes=(LogNote(type="log", level="warn", message="!"),))
    assert parse_frame(program(notes)) == [noted]
    reports = [
        {"type": "decision", "node": "d1", "outcome": "case:" + "x" * 195, "counted": 0},
        {"type": "loop", "node": "l1", "counted": 2**40},
    ]
    told = (
        BranchNote(type="decision", node="d1", outcome="case:" + "x" * 195),
        LoopNote(type="loop", node="l1", counted=2**40),
    )
    assert parse_frame(program({"kind": "noted", "notes": reports})) == [
        Noted(kind="noted", notes=told)
    ]
    lines = json.dumps(notes) + "\n" + json.dumps(call)
    assert parse_frame(Frame("program", lines.encode())) == [noted, CallMade.model_validate(call)]
    assert parse_frame(program({"kind": "paused"})) == [Paused(kind="paused")]
    assert parse_frame(Frame("host", b'{"kind":"ready"}')) == [HostMessage(kind="ready")]


@pytest.mark.parametrize(
    "frame",
    [
        program({"kind": "ready"}),
        program({"kind": "call", "id": -1, "node": None, "tool": "x", "args": {}}),
        program({"kind": "call", "id": 1, "node": None, "tool": "x", "args": [1]}),
        program({"kind": "call", "id": 1, "node": "", "tool": "x", "args": {}}),
        program({"kind": "call", "id": 1, "node": "n1", "tool": "x" * 300, "args": {}}),
        program({"kind": "noted", "notes": [{"type": "tool_end"}]}),
        program({"kind": "noted", "notes": [{"type": "loop", "node": "l1", "counted": -1}]}),
        program({"kind": "noted", "notes": [{"type": "loop", "node": None}]}),
        program([]),
        Frame("program", b"\xff"),
        Frame("program", b'{"kind":"returned","value":1}\n'),
        Frame("program", b'{"kind":"returned","value":"\\ud800"}'),
        Frame("program", b'{"kind":"returned","value":' + b"[" * 5000 + b"]" * 5000 + b"}"),
        Frame("host", b'{"kind":"returned","value":1}'),
    ],
    ids=range(14),
)
def test_what_its_interface_cannot_send_is_a_breach(frame: Frame) -> None:
    with pytest.raises(ProtocolViolation, match="cannot send"):
        parse_frame(frame)


@given(body=st.binary(max_size=200))
def test_any_bytes_are_a_message_or_a_breach(body: bytes) -> None:
    for frame in (Frame("program", body), Frame("host", body)):
        try:
            parse_frame(frame)
        except ProtocolViolation:
            continue


def test_a_sandbox_is_started_with_no_permission_at_all() -> None:
    argv = sandbox_argv("/bin/deno", "/runtime", max_heap_mib=64, prefix=("setpriv", "--"))

    assert argv[:4] == ("setpriv", "--", "/bin/deno", "run")
    assert argv[-1] == "/runtime/host.js"
    assert not [flag for flag in argv if flag.startswith(("--allow", "-A", "--unsafe"))]
    assert {"--no-prompt", "--no-remote", "--no-npm", "--cached-only"} <= set(argv)
    assert "--import-map=/runtime/imports.json" in argv
    assert "--max-old-space-size=64" in argv[-2]
    assert "HOME" not in ENVIRONMENT
    assert sandbox_argv("/bin/deno", "/runtime", max_heap_mib=64)[0] == "/bin/deno"


def test_a_check_is_answered_with_its_nonce_and_another() -> None:
    assert host_nonce("a1", HostMessage(kind="checked", message="a1 b2")) == "b2"


@pytest.mark.parametrize(
    "said",
    [
        None,
        HostMessage(kind="checked", message="a0 b2"),
        HostMessage(kind="checked", message="a1"),
        HostMessage(kind="ready", message="a1 b2"),
        Returned(kind="returned", value="a1 b2"),
    ],
)
def test_a_check_that_is_answered_otherwise_is_a_breach(
    said: HostMessage | Returned | None,
) -> None:
    with pytest.raises(ProtocolViolation, match="a check was answered with"):
        host_nonce("a1", said)
