"""A program and what it must come to."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

REFUSED = "Error executing tool refuse: number {} is refused"


@dataclass(frozen=True)
class Program:
    """A program and what it comes to: its result, or the message of its error."""

    code: str
    result: object = None
    error: str | None = None

    def fits(self, answer: Mapping[str, object]) -> bool:
        """Whether this is how it must end."""
        error = cast("Mapping[str, object]", answer["error"] or {})
        return (answer["result"], error.get("message")) == (self.result, self.error)
