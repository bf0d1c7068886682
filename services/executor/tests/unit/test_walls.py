"""Walls as data: command lines, rules, limits and statuses."""

import struct

import pytest

from pml_executor.domain.bubblewrap import (
    DENO,
    RUNTIME,
    bubblewrap,
    descriptors,
    libraries,
    loader_of,
)
from pml_executor.domain.cgroups import GroupLocation, group_locations, group_settings, oom_killed
from pml_executor.domain.endings import ProcessExit, exit_error
from pml_executor.domain.landlock import DATA, FOLDER, PROGRAM, Right, rule, rules_for, ruleset
from pml_executor.domain.resources import Resources, data_mib, resident_mib
from pml_executor.domain.walls import NO_WALLS, Walls, missing_confinement

LISTING = """\tlinux-vdso.so.1 (0x00007f5f12502000)
\tlibm.so.6 => /lib/x86_64-linux-gnu/libm.so.6 (0x00007f5f0c520000)
\tlibgone.so => not found
\t/lib64/ld-linux-x86-64.so.2 (0x00007f5f12504000)
"""


def elf(*segments: tuple[int, int, int]) -> bytes:
    """The headers of a program with segments of this type, offset and size, and a loader's path at
    256."""
    rows = [struct.pack("<II6Q", kind, 0, at, 0, 0, size, 0, 0) for kind, at, size in segments]
    start = b"\x7fELF".ljust(32, b"\0") + struct.pack("<QQIHHH", 64, 0, 0, 64, 56, len(rows))
    return (start.ljust(64, b"\0") + b"".join(rows)).ljust(256, b"\0") + b"/lib64/ld.so\0"


def test_a_program_names_its_loader_unless_it_is_static() -> None:
    assert loader_of(memoryview(elf((6, 64, 112), (3, 256, 13)))) == "/lib64/ld.so"
    assert loader_of(memoryview(elf((6, 64, 56)))) is None


def test_the_libraries_of_a_program_are_those_its_loader_names() -> None:
    assert libraries(LISTING) == ("/lib/x86_64-linux-gnu/libm.so.6", "/lib64/ld-linux-x86-64.so.2")


def test_bubblewrap_shows_deno_its_libraries_and_the_runtime_and_nothing_else() -> None:
    argv = bubblewrap("/usr/bin/bwrap", "/opt/deno", "/srv/runtime", ("/lib/libc.so.6",))
    binds = [argv[i + 1 : i + 3] for i, word in enumerate(argv) if word.endswith("bind")]
    assert binds == [
        ("/opt/deno", DENO),
        ("/srv/runtime", RUNTIME),
        ("/lib/libc.so.6", "/lib/libc.so.6"),
        ("/dev/null", "/dev/null"),
    ]
    assert [word for word in argv if word in ("--bind", "--dev", "--share-net", "--tmpfs")] == []
    assert argv.index("--remount-ro") > argv.index("--proc")
    for wanted in ("--unshare-all", "--unshare-user", "--die-with-parent", "--new-session"):
        assert wanted in argv
    assert argv[argv.index("--cap-drop") + 1] == "ALL"
    assert descriptors(7, 9) == ("--seccomp", "7", "--info-fd", "9", "--")


@pytest.mark.parametrize(
    ("abi", "words"),
    [
        (1, ((1 << 13) - 1,)),
        (2, ((1 << 14) - 1,)),
        (3, ((1 << 15) - 1,)),
        (4, ((1 << 15) - 1, 3)),
        (5, ((1 << 16) - 1, 3)),
        (6, ((1 << 16) - 1, 3, 3)),
        (9, ((1 << 16) - 1, 3, 3)),
    ],
)
def test_landlock_takes_every_right_that_its_version_knows(
    abi: int, words: tuple[int, ...]
) -> None:
    assert struct.unpack(f"<{len(words)}Q", ruleset(abi)) == words


def test_landlock_gives_back_reading_and_running_alone() -> None:
    rules = rules_for(("/opt/deno",), ("/srv/runtime",), ("/dev/null",))
    assert rules == {"/opt/deno": PROGRAM, "/srv/runtime": FOLDER, "/dev/null": DATA}
    assert struct.unpack("<Qi", rule(FOLDER, 5)) == (12, 5)
    written = {bit for rights in rules.values() for bit in Right if bit in rights}
    assert written <= {Right.EXECUTE, Right.READ_FILE, Right.READ_FOLDER}


def test_a_process_leaves_no_core_writes_no_file_and_ends_some_time() -> None:
    limits = Resources(max_rss_mib=512, max_cpu_s=60).rlimits
    assert limits["RLIMIT_CORE"] == limits["RLIMIT_FSIZE"] == (0, 0)
    assert limits["RLIMIT_CPU"] == (60, 65)
    assert limits["RLIMIT_DATA"][0] > 512 * 2**20
    assert "RLIMIT_AS" not in limits


def test_resident_memory_is_counted_in_pages() -> None:
    statm = "4542289 12882 8766 15644 0 140357 0\n"
    assert resident_mib(statm, 4096) == 12882 * 4096 / 2**20
    assert data_mib(statm, 4096) == 140357 * 4096 / 2**20


@pytest.mark.parametrize(
    ("death", "kind", "words"),
    [
        (ProcessExit(-9, "fatal: out of memory", exceeded_memory=True), "memory_limit", "512 MiB"),
        (ProcessExit(-5, "fatal: JavaScript heap out of memory"), "memory_limit", "128 MiB"),
        (ProcessExit(-24), "timeout", "processor time"),
        (ProcessExit(-9), "internal", "killed"),
        (ProcessExit(3), "internal", "status 3"),
        (ProcessExit(3, "oh no"), "internal", "status 3: oh no"),
    ],
)
def test_a_death_is_told_as_what_it_was(death: ProcessExit, kind: str, words: str) -> None:
    found, text = exit_error(death, max_heap_mib=128, max_rss_mib=512)
    assert found == kind
    assert words in text


def test_walls_are_closed_where_files_and_network_are() -> None:
    assert Walls("bubblewrap").closed
    assert Walls("landlock").closed
    assert not Walls("seccomp").closed
    assert not NO_WALLS.closed


def test_walls_tell_what_stands_and_why_nothing_better_does() -> None:
    assert str(Walls("bubblewrap", ("seccomp", "rlimits"))) == "bubblewrap, seccomp, rlimits"
    walls = Walls("landlock", ("seccomp",), ("no bubblewrap: bwrap is not installed",))
    assert str(walls) == "landlock, seccomp (no bubblewrap: bwrap is not installed)"


HELD = "Name:\tdeno\nCapEff:\t0000000000000000\nNoNewPrivs:\t1\nSeccomp:\t2\n"


def test_the_kernel_has_the_last_word_on_what_a_process_is_held_to() -> None:
    assert missing_confinement(HELD, "bubblewrap") is None
    assert missing_confinement(HELD.replace("Seccomp:\t2", "Seccomp:\t0"), "landlock") == (
        "Seccomp is 0, not 2"
    )
    assert missing_confinement("", "seccomp") == "NoNewPrivs is not reported, not 1"
    capable = HELD.replace("0" * 16, "000001ffffffffff")
    assert missing_confinement(capable, "seccomp") is None
    for outer in ("bubblewrap", "landlock"):
        assert "CapEff" in (missing_confinement(capable, outer) or "")


V1 = """9:name=systemd:/
8:pids:/
5:cpu,memory:/box/of: ours
0::/
"""


def test_control_groups_are_found_in_both_versions() -> None:
    assert group_locations(V1) == {
        "pids": GroupLocation("pids/", 1),
        "memory": GroupLocation("cpu,memory/box/of: ours", 1),
    }
    mixed = "3:memory:/a\n0::/user.slice/b\n"
    assert group_locations(mixed) == {
        "memory": GroupLocation("memory/a", 1),
        "pids": GroupLocation("user.slice/b", 2),
    }
    assert group_locations("0::/\n") == {
        "memory": GroupLocation("", 2),
        "pids": GroupLocation("", 2),
    }
    assert group_locations("") == {}


def test_a_control_group_bounds_memory_and_threads() -> None:
    resources = Resources(max_rss_mib=256)
    assert group_settings("memory", GroupLocation("", 1), resources) == {
        "memory.limit_in_bytes": str(2**28)
    }
    assert group_settings("memory", GroupLocation("", 2), resources) == {"memory.max": str(2**28)}
    assert group_settings("pids", GroupLocation("", 2), resources) == {"pids.max": "128"}


def test_whom_the_kernel_ended_for_memory_is_counted() -> None:
    assert oom_killed("low 0\noom 1\noom_kill 1\n")
    assert not oom_killed("oom_kill_disable 0\nunder_oom 0\noom_kill 0\n")
    assert not oom_killed("")
