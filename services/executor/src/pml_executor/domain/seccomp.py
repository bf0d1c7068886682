"""The system call filter of a sandbox process, in the classic BPF that seccomp(2) takes.

Reads `struct seccomp_data`: the call's number at byte 0, the architecture at 4, argument i at
16 + 8 i (both machines are little-endian, so its lower half comes first).
"""

import struct
from typing import NamedTuple

from pml_executor.domain.syscalls import (
    CLONE,
    CLONE3,
    DENIED,
    FORKS,
    IOCTL,
    Machine,
    numbers,
)

AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
X32_BIT = 0x40000000

ALLOW = 0x7FFF0000
KILL = 0x80000000
REFUSE = 0x00050000 | 1  # EPERM
UNKNOWN = 0x00050000 | 38  # ENOSYS: glibc then falls back to an older call

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_CLONE_THREAD = 0x00010000
_CLONE_NAMESPACES = 0x7E020000
_TERMINAL_INPUT = (0x5412, 0x541C)  # TIOCSTI, TIOCLINUX


class Instruction(NamedTuple):
    """`struct sock_filter`: jumps count from the next instruction."""

    code: int
    if_true: int
    if_false: int
    value: int


def seccomp_filter(machine: Machine, *, forks: bool) -> bytes:
    """Build the filter; `forks` if the filtered process has yet to start the sandbox process."""
    clone = (_CLONE_NAMESPACES, REFUSE, ALLOW) if forks else (_CLONE_THREAD, ALLOW, REFUSE)
    program = [
        _load(4),
        Instruction(_EQUAL, 1, 0, AUDIT_ARCH[machine]),
        _return(KILL),
        _load(0),
        *(_answer(_AT_LEAST, X32_BIT, UNKNOWN) if machine == "x86_64" else ()),
        *_answer(_EQUAL, CLONE3[machine], UNKNOWN),
        Instruction(_EQUAL, 0, 4, CLONE[machine]),
        _load(16),
        *_answer(_ANY_BIT, *clone[:2]),
        _return(clone[2]),
        Instruction(_EQUAL, 0, 6, IOCTL[machine]),
        _load(24),
        *(line for command in _TERMINAL_INPUT for line in _answer(_EQUAL, command, REFUSE)),
        _return(ALLOW),
    ]
    refused = numbers(DENIED if forks else DENIED | FORKS, machine)
    program += [line for number in refused for line in _answer(_EQUAL, number, REFUSE)]
    program.append(_return(ALLOW))
    return b"".join(struct.pack("<HBBI", *line) for line in program)


def _load(offset: int) -> Instruction:
    return Instruction(_LOAD, 0, 0, offset)


def _return(verdict: int) -> Instruction:
    return Instruction(_RETURN, 0, 0, verdict)


def _answer(compare: int, value: int, verdict: int) -> tuple[Instruction, Instruction]:
    """Return `verdict` if the loaded value compares so, else continue with the next line."""
    return Instruction(compare, 0, 1, value), _return(verdict)
