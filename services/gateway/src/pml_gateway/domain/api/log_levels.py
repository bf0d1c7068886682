"""Levels of log messages (MCP, as syslog has them), and messages as clients get them."""

import json
from typing import Final, Literal, TypeGuard, get_args

from pydantic import JsonValue

from pml_common.contracts.tool import JsonObject

LogLevel = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
"""The least severe first."""

LONGEST_DATA: Final = 16_000
"""Characters of JSON; of longer data the beginning is passed on, as text."""

_LEVELS: Final[tuple[LogLevel, ...]] = get_args(LogLevel)


def is_level(given: object) -> TypeGuard[LogLevel]:
    """Whether this is a level."""
    return given in _LEVELS


def reaches(level: LogLevel, wanted: LogLevel | None) -> bool:
    """Whether messages of a level go to who wants this level and above; None wants none."""
    return wanted is not None and _LEVELS.index(level) >= _LEVELS.index(wanted)


def log_params(server: str, level: LogLevel, logger: str | None, data: JsonValue) -> JsonObject:
    """Build the parameters of `notifications/message` for a message of a server, which its logger
    names: `fs`, or `fs/watcher`."""
    text = json.dumps(data, ensure_ascii=False)
    if len(text) > LONGEST_DATA:
        data = f"{text[:LONGEST_DATA]}… ({len(text)} characters)"
    named = server if not logger else f"{server}/{logger}"
    return {"level": level, "logger": named, "data": text if data is None else data}
