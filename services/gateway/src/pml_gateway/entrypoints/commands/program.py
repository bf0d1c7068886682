"""The gateway's program with arguments: commands on an `mcpServers` file that need the gateway's
own code. Each prints lines of JSON; `pml servers` shows them to people."""

import argparse
import asyncio
import json
import logging
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from pml_common.contracts.tool import JsonObject
from pml_gateway.entrypoints.commands.check import check


def run_command(words: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run a command; return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m pml_gateway")
    commands = parser.add_subparsers(dest="command", required=True)
    checking = commands.add_parser("check", help="read an mcpServers file")
    checking.add_argument("file", type=Path)
    checking.add_argument("--connect", action="store_true")
    logging_in = commands.add_parser("login", help="log in at one of its servers")
    logging_in.add_argument("file", type=Path)
    logging_in.add_argument("name")
    logging_in.add_argument("--logins", type=Path, required=True)
    logging_in.add_argument("--within", type=float, default=300.0)
    chosen = parser.parse_args(words)
    logging.getLogger().addHandler(logging.NullHandler())  # the answer says it all
    if chosen.command == "check":
        _print(asyncio.run(check(chosen.file, environment, connect=chosen.connect)))
    else:
        _log_in(chosen, environment)
    return 0


def _log_in(chosen: argparse.Namespace, environment: Mapping[str, str]) -> None:
    # Imported here: the MCP SDK takes seconds.
    from pml_gateway.adapters.login_files import LoginFiles
    from pml_gateway.entrypoints.commands.login import LoginFailed, login

    logins = LoginFiles(chosen.logins)
    try:
        asyncio.run(login(chosen.name, chosen.file, logins, environment, chosen.within, _print))
    except LoginFailed as error:
        _print({"event": "failed", "message": str(error)})


def _print(answer: JsonObject) -> None:
    sys.stdout.write(f"{json.dumps(answer)}\n")
    sys.stdout.flush()
