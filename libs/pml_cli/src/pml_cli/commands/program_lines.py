"""Analysis of many programs in one process: JSON Lines in, JSON Lines out."""

import json
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from typing import NoReturn

from pydantic import JsonValue

from pml_analysis.analysis import Analysis, Rejection
from pml_analysis.report import to_json


class _BadLine(Exception):
    """A line without a program; `id` is the line's id, if it has one."""

    def __init__(self, message: str, id_: JsonValue = None) -> None:
        super().__init__(message)
        self.id = id_


def answers(read: Callable[[str], Analysis | Rejection], lines: Iterable[bytes]) -> Iterator[str]:
    """For each line `{"id": …, "code": "…"}`, yield the program's analysis with its `id`; for any
    other line, and on an internal error, an `error` with the line's number."""
    for number, line in enumerate(lines, start=1):
        try:
            id_, code = _program(line)
        except _BadLine as error:
            yield _error(error.id, "usage", str(error), number)
            continue
        try:
            yield json.dumps({"id": id_, **to_json(read(code))})
        except Exception as error:  # noqa: BLE001 - an error affects only its own line
            traceback.print_exc(file=sys.stderr)
            yield _error(id_, "internal", f"{type(error).__name__}: {error}", number)


def _program(line: bytes) -> tuple[JsonValue, str]:
    try:
        found: JsonValue = json.loads(line.decode("utf-8"), parse_constant=_no_number)
    except UnicodeDecodeError as error:
        raise _BadLine(f"not UTF-8 text (byte {error.start})") from error
    except json.JSONDecodeError as error:
        raise _BadLine(f"not JSON: {error.msg} (column {error.colno})") from error
    except (ValueError, RecursionError) as error:
        raise _BadLine(f"not JSON that can be read: {error}") from error
    if not isinstance(found, dict):
        raise _BadLine('expected an object: {"id": …, "code": "…"}')
    code, id_ = found.get("code"), found.get("id")
    if not isinstance(code, str):
        raise _BadLine("`code` is missing or no text", id_)
    return id_, code


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is no JSON number")


def _error(id_: JsonValue, kind: str, message: str, line: int) -> str:
    return json.dumps({"id": id_, "error": {"kind": kind, "message": message, "line": line}})
