"""The system call filter, run as the kernel would run it."""

import struct

import pytest

from pml_executor.domain.seccomp import ALLOW, AUDIT_ARCH, KILL, REFUSE, UNKNOWN, seccomp_filter
from pml_executor.domain.syscalls import (
    CLONE,
    CLONE3,
    DENIED,
    FORKS,
    IOCTL,
    MACHINES,
    Machine,
    numbers,
)

THREAD = 0x003D0F00
VFORK = 0x00004111
NEW_USER = 0x10000011
EVERYDAY = {"x86_64": (0, 1, 9, 11, 59, 202, 257, 281), "aarch64": (63, 64, 222, 221, 98, 56)}


def verdict(
    program: bytes, machine: Machine, number: int, *args: int, arch: int | None = None
) -> int:
    """Return the kernel's verdict on a call: an interpreter of the few instructions in use."""
    padded = [*args, 0, 0, 0, 0, 0, 0][:6]
    data = struct.pack("<iIQ6Q", number, arch or AUDIT_ARCH[machine], 0, *padded)
    lines = list(struct.iter_unpack("<HBBI", program))
    accumulator, at = 0, 0
    while True:
        code, if_true, if_false, value = lines[at]
        if code == 0x06:
            return value
        if code == 0x20:
            (accumulator,) = struct.unpack_from("<I", data, value)
            at += 1
            continue
        holds = {
            0x15: accumulator == value,
            0x35: accumulator >= value,
            0x45: bool(accumulator & value),
        }[code]
        at += 1 + (if_true if holds else if_false)


@pytest.fixture(params=MACHINES)
def machine(request: pytest.FixtureRequest) -> Machine:
    return request.param


@pytest.mark.parametrize("forks", [False, True])
def test_every_listed_call_is_refused_and_no_everyday_one(machine: Machine, forks: bool) -> None:
    program = seccomp_filter(machine, forks=forks)
    for number in numbers(DENIED, machine):
        assert verdict(program, machine, number) == REFUSE
    for number in EVERYDAY[machine]:
        assert verdict(program, machine, number) == ALLOW


def test_a_thread_may_begin_and_a_process_may_not(machine: Machine) -> None:
    program = seccomp_filter(machine, forks=False)
    assert verdict(program, machine, CLONE[machine], THREAD) == ALLOW
    assert verdict(program, machine, CLONE[machine], VFORK) == REFUSE
    assert verdict(program, machine, CLONE[machine], NEW_USER) == REFUSE
    for number in numbers(FORKS, machine):
        assert verdict(program, machine, number) == REFUSE


def test_who_has_yet_to_start_the_sandbox_may_fork_but_enters_no_namespace(
    machine: Machine,
) -> None:
    program = seccomp_filter(machine, forks=True)
    assert verdict(program, machine, CLONE[machine], THREAD) == ALLOW
    assert verdict(program, machine, CLONE[machine], VFORK) == ALLOW
    assert verdict(program, machine, CLONE[machine], NEW_USER) == REFUSE
    for number in numbers(FORKS, machine):
        assert verdict(program, machine, number) == ALLOW


def test_the_call_whose_flags_no_filter_can_read_is_unknown(machine: Machine) -> None:
    for forks in (False, True):
        program = seccomp_filter(machine, forks=forks)
        assert verdict(program, machine, CLONE3[machine], THREAD) == UNKNOWN


def test_nothing_is_typed_into_a_terminal(machine: Machine) -> None:
    program = seccomp_filter(machine, forks=False)
    assert verdict(program, machine, IOCTL[machine], 0, 0x5412) == REFUSE
    assert verdict(program, machine, IOCTL[machine], 0, 0x541C) == REFUSE
    assert verdict(program, machine, IOCTL[machine], 0, 0x5421) == ALLOW


def test_calls_in_another_machines_numbers_end_the_process(machine: Machine) -> None:
    program = seccomp_filter(machine, forks=False)
    assert verdict(program, machine, 1, arch=0x40000003) == KILL


def test_the_second_table_of_x86_is_closed() -> None:
    program = seccomp_filter("x86_64", forks=False)
    assert verdict(program, "x86_64", 0x40000000 + 41) == UNKNOWN


def test_the_filter_fits_in_the_smallest_pipe(machine: Machine) -> None:
    assert len(seccomp_filter(machine, forks=False)) <= 4096


def test_call_numbers_are_no_ones_twice() -> None:
    for machine in MACHINES:
        every = [*numbers(DENIED | FORKS, machine), CLONE[machine], CLONE3[machine], IOCTL[machine]]
        assert len(every) == len(set(every))
