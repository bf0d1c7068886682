"""Tools and servers by names in other spellings."""

import pytest

from pml_analysis.names.spellings import Spellings
from pml_common.contracts.listed_names import listed_name

SPELLINGS = Spellings(
    {
        "fs": ["read_file", "list"],
        "my-git": ["status", "Status", "log.all"],
        "a": ["b_c"],
        "a_b": ["c"],
        "web": ["list"],
    }
)


@pytest.mark.parametrize(
    ("name", "tools"),
    [
        ("fs_read_file", ["fs:read_file"]),
        ("fs:read_file", ["fs:read_file"]),
        ("FS.ReadFile", ["fs:read_file"]),
        ("mcp__fs__read_file", ["fs:read_file"]),
        ("mcp/fs/read file", ["fs:read_file"]),
        ("readFile", ["fs:read_file"]),
        ("my_git_log_all", ["my-git:log.all"]),
        ("my_git_status", ["my-git:status", "my-git:Status"]),
        ("a_b_c", ["a:b_c", "a_b:c"]),
        ("a:b_c", ["a:b_c"]),
        ("abc", ["a:b_c", "a_b:c"]),
        ("list", ["fs:list", "web:list"]),
        (listed_name("a_b:c", 8), ["a_b:c"]),
        (listed_name("my-git:status", 16).replace("-", "_"), ["my-git:status"]),
        ("fs_read_01234567", []),
        ("fs_raed_file", []),
        ("fs_re\u200bad_file", []),
        ("fs_read_f\u0456le", []),
        ("_", []),
        ("", []),
    ],
)
def test_a_name_means_the_tools_that_differ_in_case_and_separators(
    name: str, tools: list[str]
) -> None:
    assert [":".join(tool) for tool in SPELLINGS.tools(name)] == tools


@pytest.mark.parametrize(
    ("path", "tools"),
    [
        (("fs", "readFile"), ["fs:read_file"]),
        (("MyGit", "LogAll"), ["my-git:log.all"]),
        (("my-git", "Status"), ["my-git:Status"]),
        (("my-git", "STATUS"), ["my-git:status", "my-git:Status"]),
        (("fs", "status"), []),
        (("gone", "list"), []),
    ],
)
def test_a_path_means_tools_of_its_server(path: tuple[str, str], tools: list[str]) -> None:
    assert [":".join(tool) for tool in SPELLINGS.tools_of(*path)] == tools


def test_a_path_is_known_as_it_is_written() -> None:
    assert SPELLINGS.has(("fs",))
    assert SPELLINGS.has(("fs", "list"))
    assert not SPELLINGS.has(("FS",))
    assert not SPELLINGS.has(("fs", "List"))
    assert not SPELLINGS.has(("gone", "list"))
    assert not SPELLINGS.has(())
