"""Reading of command lines, and what every command declares."""

import inspect
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from libs.pml_cli.tests.support.fakes import pml
from pml_cli.app import PML
from pml_cli.command_line import Command, Group, GroupAt, UsageError, run
from pml_cli.options import flag, number, one_of, option, switch, word


def every(group: Group = PML, before: tuple[str, ...] = ()) -> Iterator[tuple[str, Command]]:
    for name, entry in group.entries.items():
        if isinstance(entry, GroupAt):
            yield from every(entry.load(), (*before, name))
        else:
            yield " ".join((*before, name)), entry


COMMANDS = dict(every())


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_declares_what_its_function_takes(name: str) -> None:
    command = COMMANDS[name]
    taken = [one.settings.get("dest", one.flags[0]) for one in command.arguments]
    named = {each.lstrip("-").replace("-", "_"): None for each in taken}
    assert len(named) == len(command.arguments)
    inspect.signature(command.run).bind(**named)


@pytest.mark.parametrize("name", ["", *COMMANDS, *PML.entries])
def test_help_says_what_a_command_is_for_and_takes(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "1000")
    assert pml(monkeypatch, *name.split(), "--help") == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"Usage: pml {name}".rstrip())
    entry = COMMANDS.get(name)
    for said in [] if entry is None else [entry.help, *_flags(entry)]:
        assert said.replace("%%", "%") in shown


def _flags(command: Command) -> Iterator[str]:
    for one in command.arguments:
        yield one.settings["help"]
        if one.is_option:
            yield one.flags[0]


@pytest.mark.parametrize("words", [(), ("approvals",), ("dns", "--admin")])
def test_a_group_without_a_command_shows_its_help_and_fails(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert pml(monkeypatch, *words) == 2
    assert "Commands:" in capsys.readouterr().out


LIMIT = "Invalid value for '--limit' (env var: 'LIMIT_OF_TESTS')"


def reading(*words: str) -> dict[str, object]:
    """Read a line for a command with every kind of argument, and return its values."""
    called: dict[str, object] = {}

    def take(**values: object) -> None:
        called.update(values)

    group = Group()
    arguments = (
        word("first"),
        word("second", nargs="?", **one_of("a", "b")),
        word("rest", nargs="*", type=Path),
        option("--limit", default=10, variable="LIMIT_OF_TESTS", **number(int, 1, 100)),
        option("--at-least", **number(float, 0)),
        option("--each", action="append"),
        option("--needed", required=True),
        flag("--json", "", name="as_json"),
        switch("--sure", default=None),
    )
    group.add("take", "", arguments, take)
    assert run(group, ["take", *words], "x") == 0
    return called


def test_options_and_words_come_in_any_order() -> None:
    assert reading("one", "--limit", "5", "a", "--needed=x", "c", "--json", "d") == {
        "first": "one",
        "second": "a",
        "rest": [Path("c"), Path("d")],
        "limit": 5,
        "at_least": None,
        "each": None,
        "needed": "x",
        "as_json": True,
        "sure": None,
    }


def test_all_after_two_dashes_is_positional() -> None:
    read = reading("--needed", "x", "one", "b", "--", "npx", "--json", "--", "-y")
    assert read["rest"] == [Path(each) for each in ("npx", "--json", "--", "-y")]
    assert read["as_json"] is False


def test_options_are_repeated_denied_and_empty() -> None:
    read = reading("one", "--each", "a=1", "--each", "", "--no-sure", "--needed", "-", "--sure")
    assert (read["each"], read["sure"], read["needed"]) == (["a=1", ""], True, "-")
    assert reading("one", "--needed", "x", "--at-least", "0.5")["at_least"] == 0.5


@pytest.mark.parametrize("value", ["-", "-x", "--json", "a=b", "- do it"])
def test_the_value_of_an_option_may_look_like_anything(value: str) -> None:
    read = reading("one", "--needed", value)
    assert (read["needed"], read["as_json"]) == (value, False)


def test_a_variable_stands_for_an_option_that_is_not_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIMIT_OF_TESTS", "7")
    assert reading("one", "--needed", "x")["limit"] == 7
    assert reading("one", "--needed", "x", "--limit", "8")["limit"] == 8
    monkeypatch.setenv("LIMIT_OF_TESTS", "many")
    with pytest.raises(UsageError, match=re.escape(f"{LIMIT}: invalid int value: 'many'")):
        reading("one", "--needed", "x")
    monkeypatch.setenv("LIMIT_OF_TESTS", "")
    assert reading("one", "--needed", "x")["limit"] == 10


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "Missing option '--needed'."),
        (("--needed", "x"), "Missing argument 'first'."),
        (("--needed",), "Option '--needed' requires an argument."),
        (("one", "--need", "x"), "No such option: --need Did you mean '--needed'?"),
        (("one", "-x"), "No such option: -x"),
        (("--needed", "x", "one", "c"), "Invalid value for 'second': 'c' is not one of 'a', 'b'"),
        (("--limit", "0"), f"{LIMIT}: 0 is not from 1 to 100"),
        (("--at-least", "-1"), "Invalid value for '--at-least': -1 is not at least 0"),
        (("--json=yes",), "Invalid value for '--json': ignored explicit argument 'yes'"),
    ],
)
def test_a_line_that_cannot_be_read_is_an_error(words: tuple[str, ...], said: str) -> None:
    with pytest.raises(UsageError) as raised:
        reading(*words)
    assert str(raised.value) == said
    assert raised.value.usage == "x take [OPTIONS] first [second] [rest]..."


def test_an_error_of_the_line_says_how_it_is_written(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert pml(monkeypatch, "dns", "--admins", "whois") == 2
    assert pml(monkeypatch, "statu") == 2
    assert pml(monkeypatch, "status", "extra") == 2
    assert capsys.readouterr().err.splitlines() == [
        "Usage: pml dns [OPTIONS] COMMAND [ARGS]...",
        "Try 'pml dns --help' for help.",
        "pml: No such option: --admins Did you mean '--admin'?",
        "Usage: pml [OPTIONS] COMMAND [ARGS]...",
        "Try 'pml --help' for help.",
        "pml: No such command 'statu'. Did you mean 'status'?",
        "Usage: pml status [OPTIONS]",
        "Try 'pml status --help' for help.",
        "pml: Got unexpected extra argument(s) (extra)",
    ]


def test_a_reader_that_has_gone_ends_the_command() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    line = [sys.executable, "-c", "from pml_cli.app import main; main()", "--help"]
    ended = subprocess.run(line, stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    assert (ended.returncode, ended.stderr) == (1, b"")


@pytest.mark.parametrize(
    ("line", "expected"),
    [("pml app", {"approvals"}), ("pml dns vis", {"visibility"}), ("pml trace x --as d", {"dag"})],
)
def test_a_shell_gets_completions(line: str, expected: set[str], tmp_path: Path) -> None:
    answer = tmp_path / "answer"
    variables = {
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_IFS": "\n",
        "_ARGCOMPLETE_STDOUT_FILENAME": str(answer),
        "COMP_LINE": line,
        "COMP_POINT": str(len(line)),
    }
    program = [sys.executable, "-c", "from pml_cli.app import main; main()"]
    subprocess.run(program, env={**os.environ, **variables}, check=True)
    assert {each.strip() for each in answer.read_text().split("\n")} == expected


@pytest.mark.parametrize(
    ("shell", "file", "start"),
    [
        ("bash", ".bash_completions/pml.sh", ".bashrc"),
        ("zsh", ".zfunc/_pml", ".zshrc"),
        ("fish", ".config/fish/completions/pml.fish", None),
    ],
)
def test_completion_is_shown_and_installed_once(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    shell: str,
    file: str,
    start: str | None,
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SHELL", f"/bin/{shell}")
    if start is not None:
        (tmp_path / start).write_text("# mine")
    assert pml(monkeypatch, "--show-completion") == 0
    shown = capsys.readouterr().out
    assert "pml" in shown
    installing = partial(pml, monkeypatch, "--install-completion")
    assert (installing(), installing()) == (0, 0)
    assert (tmp_path / file).read_text() == shown
    if start is not None:
        kept, line = (tmp_path / start).read_text().splitlines()
        assert kept == "# mine"
        assert str((tmp_path / file).parent) in line


def test_completion_for_an_unknown_shell_is_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SHELL", "/bin/nosh")
    assert pml(monkeypatch, "--show-completion") == 2
    assert "bash, zsh and fish" in capsys.readouterr().err
