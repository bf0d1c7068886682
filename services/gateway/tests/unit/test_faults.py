"""Faults of requests are said in words."""

from collections.abc import Iterator

import pytest
from pydantic import JsonValue

from pml_common.contracts.display_names import PATTERN
from pml_gateway.domain.api.api import ExecuteRequest
from pml_gateway.domain.api.curation import CurateNames, LiftVariants, SaveProgram
from pml_gateway.domain.api.faults import in_words
from pml_gateway.domain.api.records import Alter, AskHistory, FindRecords, ForkRecord, Lookup
from pml_gateway.domain.api.request import Request

REQUESTS = (
    ExecuteRequest,
    CurateNames,
    LiftVariants,
    SaveProgram,
    AskHistory,
    FindRecords,
    ForkRecord,
    Lookup,
    *Alter.__subclasses__(),
)


def patterns(schema: JsonValue) -> Iterator[str]:
    """All regular expressions in a JSON schema."""
    if isinstance(schema, dict):
        for key, each in schema.items():
            if key == "pattern" and isinstance(each, str):
                yield each
            yield from patterns(each)
    elif isinstance(schema, list):
        for each in schema:
            yield from patterns(each)


@pytest.mark.parametrize("request_type", REQUESTS)
def test_every_form_of_a_text_has_words(request_type: type[Request]) -> None:
    # A display name's errors are its parser's.
    for pattern in {*patterns(request_type.model_json_schema())} - {PATTERN}:
        words = in_words({"type": "string_pattern_mismatch", "ctx": {"pattern": pattern}})
        assert words != in_words({"type": "string_pattern_mismatch", "ctx": {"pattern": "^x$"}})
        assert pattern not in words


def test_an_unknown_form_is_said_without_its_expression() -> None:
    error = {"type": "string_pattern_mismatch", "msg": "…", "ctx": {"pattern": "^x$"}}
    assert in_words(error) == "must be text of another form"
