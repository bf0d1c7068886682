"""Completion of command lines by shells, with argcomplete."""

import os
import sys
from argparse import ArgumentParser
from pathlib import Path

import argcomplete
from argcomplete.shell_integration import shellcode

from pml_cli.command_line import Group, describe
from pml_cli.errors import USAGE, CommandError


def complete(group: Group) -> None:
    """Answer a shell that asks for completions, and exit."""
    parser = ArgumentParser("pml", add_help=False)
    describe(parser, group, "pml", deep=True)
    argcomplete.autocomplete(parser)


def show() -> int:
    """Print the code for the current shell."""
    sys.stdout.write(_code(_shell()))
    return 0


def install() -> int:
    """Install completion for the current shell."""
    shell, home = _shell(), Path.home()
    file, start, line = {
        "bash": (home / ".bash_completions/pml.sh", home / ".bashrc", "source {file}"),
        "zsh": (
            home / ".zfunc/_pml",
            home / ".zshrc",
            "fpath+={folder}; autoload -Uz compinit; compinit",
        ),
        "fish": (home / ".config/fish/completions/pml.fish", None, ""),
    }[shell]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(_code(shell), encoding="utf-8")
    wanted = line.format(file=f"'{file}'", folder=f"'{file.parent}'")
    if start is not None:
        before = start.read_text(encoding="utf-8") if start.exists() else ""
        if wanted not in before:
            start.write_text(f"{before.rstrip()}\n{wanted}\n".lstrip(), encoding="utf-8")
    sys.stdout.write(f"{shell} completion installed in {file}; it begins with the next shell\n")
    return 0


def _code(shell: str) -> str:
    return shellcode(["pml"], shell=shell) + "\n"


def _shell() -> str:
    shell = Path(os.environ.get("SHELL", "")).name
    if shell not in ("bash", "zsh", "fish"):
        raise CommandError(f"completion is for bash, zsh and fish, not for SHELL={shell!r}", USAGE)
    return shell
