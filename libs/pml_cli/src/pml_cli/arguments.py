"""Parsing of command-line arguments."""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pml_cli.errors import USAGE, CommandError

if TYPE_CHECKING:
    from pydantic import JsonValue


def read_source(file: str) -> str:
    """Read a file, or standard input for `-`, as UTF-8 text, without a byte order mark.

    Raises CommandError.
    """
    try:
        raw = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        return raw.decode("utf-8-sig")
    except OSError as error:
        raise CommandError(f"cannot read {file}: {error.strerror}", USAGE) from error
    except UnicodeDecodeError as error:
        name = "standard input" if file == "-" else file
        raise CommandError(f"{name} is not UTF-8 text (byte {error.start})", USAGE) from error


def read_json(file: str) -> "JsonValue":
    """Read the JSON document in a file. Raises CommandError with line and column."""
    try:
        return json.loads(read_source(file))
    except json.JSONDecodeError as error:
        raise CommandError(
            f"{file}:{error.lineno}:{error.colno}: not JSON: {error.msg}", USAGE
        ) from error


def read_object(file: str, what: str) -> "dict[str, JsonValue]":
    """Read the JSON object in a file. Raises CommandError."""
    parsed = read_json(file)
    if not isinstance(parsed, dict):
        raise CommandError(f"{file}: {what} must be a JSON object", USAGE)
    return parsed


def read_run(dag: str | None, args: "Mapping[str, JsonValue]") -> "dict[str, JsonValue]":
    """Build the request fields that run the DAG in a file, if given, with these arguments:
    `{"tasks": …}`, or `{"dag": …, "args": …}` as `pml trace --as dag` prints it. Raises
    CommandError."""
    if dag is None:
        return {"args": dict(args) or None}
    document = read_object(dag, "the DAG")
    drawn = document if "dag" in document else {"dag": document}
    before = drawn.get("args")
    given = {**(before if isinstance(before, dict) else {}), **args}
    return {"dag": drawn["dag"], "args": given or None}


def parse_arguments(pairs: Sequence[str], document: str | None = None) -> "dict[str, JsonValue]":
    """Merge `key=value` pairs over a JSON object; a value that parses as JSON is JSON, else a
    string.

    Raises CommandError.
    """
    found: dict[str, JsonValue] = {}
    if document is not None:
        found.update(read_object(document, "the arguments"))
    for pair in pairs:
        key, sign, value = pair.partition("=")
        if not sign or not key:
            raise CommandError(f"--arg {pair!r}: expected key=value", USAGE)
        try:
            found[key] = json.loads(value)
        except json.JSONDecodeError:
            found[key] = value
    return found
