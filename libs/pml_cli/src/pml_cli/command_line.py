"""Command lines: what a command takes is declared beside it, and read by argparse.

Only the group and the command that a line names are imported and read. Options and positional words
may come in any order, and all after `--` is positional.
"""

import os
import sys
from argparse import REMAINDER, ArgumentError, ArgumentParser, ArgumentTypeError, HelpFormatter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple

from pml_cli.errors import USAGE, CommandError

Run = Callable[..., int | None]


class Argument(NamedTuple):
    """A positional word, or an option; `settings` are argparse's. `variable` names the variable of
    the environment that stands for an option which is not given."""

    flags: tuple[str, ...]
    settings: Mapping[str, Any]
    variable: str | None = None

    @property
    def is_option(self) -> bool:
        """Whether it is given by a name."""
        return self.flags[0].startswith("-")

    @property
    def shown(self) -> str:
        """Its name in messages."""
        metavar = None if self.is_option else self.settings.get("metavar")
        return str(metavar or self.flags[0])


class Command(NamedTuple):
    """A command and what it takes."""

    help: str
    arguments: Sequence[Argument]
    run: Run


class GroupAt(NamedTuple):
    """The group named GROUP in a module, which is imported to be used."""

    help: str
    module: str

    def load(self) -> "Group":
        """Import it, and say what it is for."""
        group: Group = import_module(self.module).GROUP
        group.help = self.help
        return group


class Group:
    """Commands by name. Before one runs, `prepare` is called with the group's own options; a code
    that it returns ends the command."""

    def __init__(
        self, help: str = "", options: Sequence[Argument] = (), prepare: Run | None = None
    ) -> None:
        self.help = help
        self.options = options
        self.prepare = prepare
        self.entries: dict[str, Command | GroupAt] = {}

    def command(self, *arguments: Argument, name: str | None = None) -> Callable[[Run], Run]:
        """Add a function as a command: under its own name, described by its docstring, and called
        with its arguments by name."""

        def add(run: Run) -> Run:
            self.add(name or run.__name__, run.__doc__ or "", arguments, run)
            return run

        return add

    def add(self, name: str, help: str, arguments: Sequence[Argument], run: Run) -> None:
        """Add a command."""
        self.entries[name] = Command(" ".join(help.split()), arguments, run)


class UsageError(CommandError):
    """A line that cannot be read; `usage` says how it is written."""

    def __init__(self, message: str, usage: str) -> None:
        super().__init__(message, USAGE)
        self.usage = usage


def run(group: Group, words: Sequence[str], name: str) -> int:
    """Run the command that a line names; return its exit code. Raises CommandError."""
    usage = usage_of(name, group)
    parser = _options_parser(group.options, usage)
    parser.add_argument("words", nargs=REMAINDER)
    given, unknown = _read(parser, group.options, words)
    rest: list[str] = given.pop("words") or []
    if given.pop("help"):
        return _help(group, name)
    if unknown:
        raise _no_such_option(unknown[0], group.options, usage)
    code = None if group.prepare is None else group.prepare(**given)
    if code is not None:
        return code
    if not rest:
        return _help(group, name) or USAGE
    entry = group.entries.get(rest[0])
    if entry is None:
        guess = _guesses(rest[0], group.entries)
        raise UsageError(f"No such command '{rest[0]}'.{guess}", usage)
    name = f"{name} {rest[0]}"
    if isinstance(entry, GroupAt):
        return run(entry.load(), rest[1:], name)
    values = _values(entry.arguments, rest[1:], usage_of(name, entry))
    return _help(entry, name) if values is None else entry.run(**values) or 0


def usage_of(name: str, entry: Command | Group) -> str:
    """Show the form of a line."""
    if isinstance(entry, Group):
        return f"{name} [OPTIONS] COMMAND [ARGS]..."
    words = [f"{name} [OPTIONS]"]
    for one in entry.arguments:
        if not one.is_option:
            nargs = one.settings.get("nargs")
            shown = one.shown if nargs in (None, "+") else f"[{one.shown}]"
            words.append(f"{shown}..." if nargs in ("*", "+") else shown)
    return " ".join(words)


_UNSEEN = partial(HelpFormatter, width=80)
"""Argparse makes a formatter for each argument; with a width it asks no terminal for its size, for
which it imports shutil."""


def _options_parser(options: Sequence[Argument], usage: str) -> ArgumentParser:
    parser = ArgumentParser(
        usage=usage,
        add_help=False,
        allow_abbrev=False,
        exit_on_error=False,
        formatter_class=_UNSEEN,
    )
    parser.add_argument("--help", action="store_true")
    for one in options:
        settings: dict[str, Any] = {**one.settings, "required": False}
        parser.add_argument(*one.flags, **settings)
    return parser


def _read(
    parser: ArgumentParser, options: Sequence[Argument], words: Sequence[str]
) -> tuple[dict[str, Any], list[str]]:
    """The values by name, and the words that are left."""
    variables = {one.flags[0]: one.variable for one in options if one.variable}
    told = {flag: os.environ.get(name) for flag, name in variables.items()}
    stand_ins = [f"{flag}={value}" for flag, value in told.items() if value]
    try:
        given, left = parser.parse_known_args([*stand_ins, *words])
    except ArgumentError as error:
        name = error.argument_name
        if error.message.startswith("expected"):
            message = f"Option '{name}' requires an argument."
        else:
            by = f" (env var: '{variables[name]}')" if name in variables else ""
            message = f"Invalid value for '{name}'{by}: {error.message}"
        raise UsageError(message, parser.usage or "") from error
    return vars(given), left


def _values(
    arguments: Sequence[Argument], words: Sequence[str], usage: str
) -> dict[str, Any] | None:
    """The values of a command's arguments; None where help is asked for."""
    options = [one for one in arguments if one.is_option]
    words = list(_joined(words, options))
    end = words.index("--") if "--" in words else len(words)
    given, left = _read(_options_parser(options, usage), options, words[:end])
    if given.pop("help"):
        return None
    for word in left:
        if word.startswith("-") and word != "-":
            raise _no_such_option(word, options, usage)
    for one in options:
        if one.settings.get("required") and given[_name(one)] is None:
            raise UsageError(f"Missing option '{one.shown}'.", usage)
    positionals = [one for one in arguments if not one.is_option]
    return {**given, **_positionals(positionals, [*left, *words[end + 1 :]], usage)}


def _joined(words: Sequence[str], options: Sequence[Argument]) -> Iterator[str]:
    """The words, with an option and its value in one: a value may begin with a dash."""
    valued = {one.flags[0] for one in options if one.settings.get("action") in (None, "append")}
    left = iter(words)
    for word in left:
        value = next(left, None) if word in valued else None
        yield word if value is None else f"{word}={value}"
        if word == "--":
            yield from left


def _positionals(arguments: Sequence[Argument], words: list[str], usage: str) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for one in arguments:
        nargs = one.settings.get("nargs")
        taken = words if nargs in ("*", "+") else words[:1]
        words = words[len(taken) :]
        if not taken and nargs in (None, "+"):
            raise UsageError(f"Missing argument '{one.shown}'.", usage)
        try:
            read = [one.settings.get("type", str)(word) for word in taken]
        except ArgumentTypeError as error:
            raise UsageError(f"Invalid value for '{one.shown}': {error}", usage) from error
        single = read[0] if read else one.settings.get("default")
        values[one.flags[0]] = read if nargs in ("*", "+") else single
    if words:
        raise UsageError(f"Got unexpected extra argument(s) ({' '.join(words)})", usage)
    return values


def _name(option: Argument) -> str:
    return option.settings.get("dest") or option.flags[0].lstrip("-").replace("-", "_")


def _no_such_option(word: str, options: Sequence[Argument], usage: str) -> UsageError:
    flag = word.partition("=")[0]
    known = [flag for one in options for flag in one.flags]
    return UsageError(f"No such option: {flag}{_guesses(flag, known)}", usage)


def _guesses(word: str, known: Iterable[str]) -> str:
    from difflib import get_close_matches

    near = " or ".join(f"'{one}'" for one in get_close_matches(word, list(known)))
    return f" Did you mean {near}?" if near else ""


def _help(entry: Command | Group, name: str) -> int:
    parser = ArgumentParser(add_help=False)
    describe(parser, entry, name)
    text = parser.format_help().replace("usage: ", "Usage: ", 1)
    sys.stdout.write(text.replace("Commands:\n  \n", "Commands:\n"))
    return 0


def describe(
    parser: ArgumentParser, entry: Command | Group, name: str, *, deep: bool = False
) -> None:
    """Declare all of a command or group to argparse, for its help; `deep` declares what is in the
    groups of a group, too."""
    parser.usage = usage_of(name, entry).replace("%", "%%")
    parser.description = entry.help.replace("%", "%%")
    arguments = entry.options if isinstance(entry, Group) else entry.arguments
    titles = (("Arguments", False), ("Options", True))
    groups = {is_option: parser.add_argument_group(title) for title, is_option in titles}
    for one in arguments:
        groups[one.is_option].add_argument(*one.flags, **one.settings)
    groups[True].add_argument("--help", action="help", help="Show this message and exit.")
    if not isinstance(entry, Group):
        return
    commands = parser.add_subparsers(title="Commands", metavar="", prog=name)
    for key, each in entry.entries.items():
        inner = commands.add_parser(key, help=each.help.replace("%", "%%"), add_help=False)
        if deep:
            loaded = each.load() if isinstance(each, GroupAt) else each
            describe(inner, loaded, f"{name} {key}", deep=True)
