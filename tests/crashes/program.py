"""A program and its expected end."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

REFUSED = "Error executing tool refuse: number {} is refused"


@dataclass(frozen=True)
class Program:
    """A program and its expected end: a result, or an error message."""

    code: str
    result: object = None
    error: str | None = None

    def matches(self, answer: Mapping[str, object]) -> bool:
        """Whether an answer is the expected end."""
        error = cast("Mapping[str, object]", answer["error"] or {})
        return (answer["result"], error.get("message")) == (self.result, self.error)
