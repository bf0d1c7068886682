"""Landlock rules for file system and network: the kernel's structures, by its ABI version."""

import struct
from collections.abc import Iterable
from enum import IntFlag


class Right(IntFlag):
    """Rights to files that a sandbox process can be given."""

    EXECUTE = 1
    READ_FILE = 4
    READ_FOLDER = 8


PROGRAM = Right.EXECUTE | Right.READ_FILE
DATA = Right.READ_FILE
FOLDER = Right.READ_FILE | Right.READ_FOLDER

_FILE_RIGHTS = ((1, 13), (2, 14), (3, 15), (5, 16))
"""Pairs of an ABI version and the number of bits of file rights that are known from it on."""
_NETWORK = 0b11  # bind and connect TCP, from ABI 4
_SCOPES = 0b11  # abstract Unix sockets and signals, from ABI 6


def ruleset(abi: int) -> bytes:
    """Build the `struct landlock_ruleset_attr` that denies every right that the kernel handles."""
    files = max(bits for since, bits in _FILE_RIGHTS if abi >= since)
    words = [(1 << files) - 1]
    if abi >= 4:
        words.append(_NETWORK)
    if abi >= 6:
        words.append(_SCOPES)
    return struct.pack(f"<{len(words)}Q", *words)


def rule(rights: Right, descriptor: int) -> bytes:
    """Build the `struct landlock_path_beneath_attr` that grants rights below an open path."""
    return struct.pack("<Qi", rights, descriptor)


def rules_for(
    programs: Iterable[str], folders: Iterable[str], files: Iterable[str]
) -> dict[str, Right]:
    """Return the rights to grant, by path."""
    return (
        dict.fromkeys(files, DATA)
        | dict.fromkeys(folders, FOLDER)
        | dict.fromkeys(programs, PROGRAM)
    )
