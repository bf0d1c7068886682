"""The gateway's program with arguments: commands on an `mcpServers` file that need the gateway's
own code. Each prints lines of JSON; `pml servers` shows them to people."""

import argparse
import asyncio
import logging
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from pml_gateway.entrypoints.commands.check import check


def run_command(words: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run a command; return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m pml_gateway")
    commands = parser.add_subparsers(dest="command", required=True)
    checking = commands.add_parser("check", help="read an mcpServers file")
    checking.add_argument("file", type=Path)
    checking.add_argument("--connect", action="store_true")
    chosen = parser.parse_args(words)
    logging.getLogger().addHandler(logging.NullHandler())  # the answer says it all
    sys.stdout.write(f"{asyncio.run(check(chosen.file, environment, connect=chosen.connect))}\n")
    return 0
