"""Faults of fields in our own words."""

import re
from datetime import datetime
from enum import Enum
from typing import Annotated, Any, Literal
from uuid import UUID

import pytest
from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    Json,
    TypeAdapter,
    ValidationError,
)

from pml_common.contracts.fault_words import faults_of, field_of, text_of, words_of


class Inner(BaseModel):
    model_config = ConfigDict(extra="forbid")

    kind: Literal["inner"] = "inner"
    n: int


class Other(BaseModel):
    kind: Literal["other"]


class Colour(Enum):
    RED = "red"


def _odd(value: int) -> int:
    if value % 2 == 0:
        raise ValueError("must be odd")
    return value


Odd = Annotated[int, AfterValidator(_odd)]
Either = Annotated[Inner | Other, Field(discriminator="kind")]
TIME = "must be a date and time with its offset, as 2026-01-31T09:30:00Z"
CASES: list[tuple[Any, object, str]] = [
    (str, 1, "must be a string"),
    (int, "x", "must be a whole number"),
    (int, 1.5, "must be a whole number"),
    (float, "x", "must be a number"),
    (Annotated[float, Field(allow_inf_nan=False)], float("nan"), "must be a finite number"),
    (bool, "x", "must be true or false"),
    (dict[str, int], [], "must be an object"),
    (Inner, [], "must be an object"),
    (Inner, {}, "n: is missing"),
    (Inner, {"n": 1, "m": 2}, "m: unknown field"),
    (list[Inner], [{"n": "x"}], "0.n: must be a whole number"),
    (list[int], 1, "must be a list"),
    (tuple[int, ...], 1, "must be a list"),
    (set[int], 1, "must be a list"),
    (None, 1, "must be null"),
    (Literal["a", "b"], "c", "must be 'a' or 'b'"),
    (Colour, "blue", "must be 'red'"),
    (Annotated[int, Field(gt=1)], 1, "must be greater than 1"),
    (Annotated[int, Field(ge=1)], 0, "must be greater than or equal to 1"),
    (Annotated[int, Field(lt=1)], 1, "must be less than 1"),
    (Annotated[int, Field(le=1)], 2, "must be less than or equal to 1"),
    (Annotated[str, Field(min_length=2)], "", "must have a length of at least 2"),
    (Annotated[str, Field(max_length=2)], "xxx", "must have a length of at most 2"),
    (Annotated[list[int], Field(min_length=1)], [], "must have at least 1 in the list"),
    (Annotated[list[int], Field(max_length=1)], [1, 2], "must have at most 1 in the list"),
    (UUID, "x", "must be a UUID, as 4d0b6fb2-acbc-5f0f-9660-00e28ec29407"),
    (datetime, "x", TIME),
    (AwareDatetime, "2026-01-31T09:30", TIME),
    (Json[Any], "{", "is not valid JSON: EOF"),
    (Either, {"kind": "x"}, "must have 'kind' as one of 'inner', 'other'"),
    (Either, {}, "must have 'kind'"),
    (Odd, 2, "must be odd"),
    (complex, "x", "is not valid"),
]


@pytest.mark.parametrize(("form", "value", "said"), CASES)
def test_a_fault_is_said_in_our_words(form: Any, value: object, said: str) -> None:
    with pytest.raises(ValidationError) as raised:
        TypeAdapter(form).validate_python(value)
    (fault,) = faults_of(raised.value)
    assert fault.startswith(said)
    assert not re.search("pydantic|https?:|Input should|Field required|Value error", fault)


def test_a_fault_is_said_once_with_its_field_alone() -> None:
    with pytest.raises(ValidationError) as raised:
        TypeAdapter(dict[Odd, int]).validate_python({"x": 1})
    assert faults_of(raised.value) == ("x: must be a whole number",)
    with pytest.raises(ValidationError) as raised:
        TypeAdapter(list[int] | list[float]).validate_python("x")
    assert faults_of(raised.value) == ("must be a list",)
    assert field_of(("body", 0, "function-after[_odd(), int]")) == "body.0"


def test_the_text_of_an_error_is_never_the_validators() -> None:
    with pytest.raises(ValidationError) as raised:
        Inner.model_validate({"kind": 1})
    assert text_of(raised.value) == "kind: must be 'inner'; n: is missing"
    assert text_of(OSError("no disk")) == "no disk"


def test_a_fault_without_its_context_is_said_all_the_same() -> None:
    assert words_of({"type": "literal_error"}) == "is not valid"
    assert words_of({"type": "of tomorrow"}) == "is not valid"
