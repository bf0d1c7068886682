"""The schema of a program's parameters."""

from typing import Final

from pml_common.contracts.tool import JsonObject

CERTAIN: Final = "x-pml-certain"
"""Keyword of a schema of parameters, with a schema of its own: what the author annotated, and what
the program fails without. The rest of the schema is inferred from uses."""


def without_certain(schema: JsonObject) -> JsonObject:
    """Return a schema of parameters for readers who know no such keyword."""
    return {keyword: value for keyword, value in schema.items() if keyword != CERTAIN}
