"""A thread under Landlock and a system call filter, which processes started on it inherit.

Both apply to one thread and its descendants, so a sandbox process needs no launcher, and the rest
of the executor is not restricted.
"""

import ctypes
import os
from collections.abc import Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from pml_executor.domain.landlock import Right, rule, ruleset

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # the same on every machine
_ASK_VERSION = 1
_PATH_BENEATH = 1
_NO_NEW_PRIVS = 38
_SET_SECCOMP = 22
_FILTER_MODE = 2
_DROP_CAPABILITY = 24
_CAPABILITIES = range(64)
_INSTRUCTION_BYTES = 8


class _FilterProgram(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


def landlock_abi() -> int:
    """Return the version of Landlock in this kernel; 0 where there is none."""
    return max(0, ctypes.CDLL(None).syscall(_CREATE_RULESET, None, 0, _ASK_VERSION))


def confined_thread(program: bytes, rules: Mapping[str, Right] | None) -> Executor:
    """Start a thread under the filter `program` that, unless `rules` is None, can open only the
    files these rules allow.

    Raises OSError when the kernel refuses.
    """
    thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="confined")
    try:
        thread.submit(_confine, program, rules).result()
    except BaseException:
        thread.shutdown(wait=False)
        raise
    return thread


def _confine(program: bytes, rules: Mapping[str, Right] | None) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    for capability in _CAPABILITIES:  # refused without root, where there are none to pass on
        libc.prctl(_DROP_CAPABILITY, capability, 0, 0, 0)
    _done(libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
    if rules is not None:
        _landlock(libc, rules)
    filter_ = _FilterProgram(len(program) // _INSTRUCTION_BYTES, program)
    _done(libc.prctl(_SET_SECCOMP, _FILTER_MODE, ctypes.byref(filter_), 0, 0), "seccomp")


def _landlock(libc: ctypes.CDLL, rules: Mapping[str, Right]) -> None:
    attributes = ruleset(landlock_abi())
    created = libc.syscall(_CREATE_RULESET, attributes, len(attributes), 0)
    descriptor = _done(created, "landlock_create_ruleset")
    try:
        for path, rights in rules.items():
            with suppress(FileNotFoundError):
                _allow(libc, descriptor, path, rights)
        _done(libc.syscall(_RESTRICT_SELF, descriptor, 0), "landlock_restrict_self")
    finally:
        os.close(descriptor)


def _allow(libc: ctypes.CDLL, ruleset_descriptor: int, path: str, rights: Right) -> None:
    beneath = os.open(Path(path).resolve(), os.O_PATH | os.O_CLOEXEC)
    try:
        added = libc.syscall(_ADD_RULE, ruleset_descriptor, _PATH_BENEATH, rule(rights, beneath), 0)
        _done(added, f"landlock_add_rule {path}")
    finally:
        os.close(beneath)


def _done(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result
