"""Base of requests: unknown fields and values of another kind are errors."""

from typing import ClassVar, Final, cast, get_args

from pydantic import BaseModel, ConfigDict, ValidationInfo, field_validator

MAX_OFFSET: Final = 2**31
"""More entries than any list has."""

_WORDS: Final[dict[type, str]] = {bool: "true or false", int: "a whole number", float: "a number"}


class Request(BaseModel):
    """Base of requests; unknown fields are errors, and so are booleans and numbers for each
    other."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    from_url: ClassVar[bool] = False
    """Whether it is also made of a URL's parameters, which are texts."""

    @field_validator("*", mode="before")
    @classmethod
    def _is_of_its_kind(cls, value: object, info: ValidationInfo) -> object:
        """Refuse a value that Pydantic would convert."""
        kinds = _scalars(cls.model_fields[info.field_name or ""].annotation)
        is_wrong = (
            not cls.from_url
            if isinstance(value, str)
            else isinstance(value, bool | int | float)
            and isinstance(value, bool) != (bool in kinds)
        )
        if kinds and is_wrong:
            raise ValueError(f"must be {_WORDS[next(iter(kinds))]}")
        return value


def _scalars(annotation: object) -> frozenset[type]:
    """Return the annotation's kind if it is boolean, integer or number, or null; else nothing."""
    kinds = frozenset(get_args(annotation) or (annotation,)) - {type(None)}
    return cast("frozenset[type]", kinds) if kinds <= _WORDS.keys() else frozenset()
