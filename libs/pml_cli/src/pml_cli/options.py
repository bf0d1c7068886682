"""Declarations of arguments: their kinds, and those that several subcommands share."""

from argparse import ArgumentTypeError, BooleanOptionalAction
from pathlib import Path
from typing import Any

from pml_cli.command_line import Argument


def option(
    flag: str,
    help: str = "",
    *,
    name: str | None = None,
    variable: str | None = None,
    default: object = None,
    **settings: Any,
) -> Argument:
    """An option with a value; `name` is that of the function's parameter."""
    if variable is not None:
        help = f"{help} [env var: {variable}]"
    if default is not None:
        help = f"{help} [default: {default}]".lstrip()
    named = {} if name is None else {"dest": name}
    return Argument(
        (flag,), {"help": _plain(help), "default": default, **named, **settings}, variable
    )


def flag(flag: str, help: str, *, name: str | None = None) -> Argument:
    """An option without a value."""
    named = {} if name is None else {"dest": name}
    return Argument((flag,), {"action": "store_true", "help": _plain(help), **named})


def switch(flag: str, help: str = "", *, default: bool | None = False) -> Argument:
    """An option that is said as `--x` or `--no-x`."""
    settings = {"action": BooleanOptionalAction, "default": default}
    return Argument((flag,), {"help": _plain(help), **settings})


def word(name: str, help: str = "", **settings: Any) -> Argument:
    """A positional word."""
    return Argument((name,), {"help": _plain(help), **settings})


def one_of(*choices: str) -> dict[str, Any]:
    """Settings of an argument that is one of a few words."""

    def read(text: str) -> str:
        if text not in choices:
            known = ", ".join(map(repr, choices))
            raise ArgumentTypeError(f"{text!r} is not one of {known}")
        return text

    return {"type": read, "choices": choices}


def number(kind: type[int] | type[float], low: int, high: int | None = None) -> dict[str, Any]:
    """Settings of an argument that is a number between two, or at least one."""

    def read(text: str) -> float:
        value = kind(text)
        if not low <= value or (high is not None and value > high):
            limits = f"at least {low}" if high is None else f"from {low} to {high}"
            raise ArgumentTypeError(f"{text} is not {limits}")
        return value

    read.__name__ = kind.__name__
    return {"type": read, "metavar": f"{low}..{'' if high is None else high}"}


def _plain(help: str) -> str:
    return help.replace("%", "%%")


AS_JSON = flag("--json", "Print one JSON document on stdout.", name="as_json")
URL = option("--url", "Gateway URL; default PML_URL, else the local stack.")
HOME = option("--home", "The stack's data folder; default PML_HOME, else ./.pml.", type=Path)
APPROVAL = option("--approval", "Id of the approval; required for a parked run.")
KEY_FILE = option(
    "--key-file",
    "Approver's key file; default PML_APPROVER_KEY_FILE, else the stack's.",
    type=Path,
)
FULL = flag("--full", "Show long values in full.")
SHOWN = option("--shown", "Digest printed by `show`; the decision is refused if it is outdated.")
REASON = option("--reason", "The reason; passed on to the agent.")
