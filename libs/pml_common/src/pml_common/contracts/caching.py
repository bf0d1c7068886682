"""Whether the result of an earlier run answers a call of a capability (B11)."""

from collections.abc import Mapping
from typing import Final, Literal, Self, cast

from pydantic import Field, model_validator

from pml_common.contracts.base import Contract

MEMOIZED_S: Final = 3600
"""For how long a result is memoized where nobody says."""
MEMOIZED_AT_MOST_S: Final = 7 * 24 * 3600
PERSISTENT_AT_MOST_S: Final = 10 * 365 * 24 * 3600


class CacheSettings(Contract):
    """What a person chooses for a capability; `ttl_s` counts from the end of the run.

    `memoize` keeps results for `ttl_s`, an hour where it is not given; `persistent` for `ttl_s` or,
    without it, until the code or these settings change. `force` caches also what may change
    something.
    """

    policy: Literal["none", "memoize", "persistent"] = "none"
    ttl_s: int | None = Field(default=None, ge=1, le=PERSISTENT_AT_MOST_S)
    force: bool = False

    @model_validator(mode="before")
    @classmethod
    def _an_hour_if_none_is_said(cls, values: object) -> object:
        if not isinstance(values, Mapping):
            return values
        given = cast(Mapping[str, object], values)
        if given.get("policy") == "memoize" and given.get("ttl_s") is None:
            return {**given, "ttl_s": MEMOIZED_S}
        return given

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.policy == "none" and (self.ttl_s is not None or self.force):
            raise ValueError("policy none takes neither ttl_s nor force: nothing is cached")
        if self.policy == "memoize" and (self.ttl_s or 0) > MEMOIZED_AT_MOST_S:
            raise ValueError(
                f"policy memoize keeps results for {MEMOIZED_AT_MOST_S} seconds (7 days) at most; "
                "persistent keeps them longer"
            )
        return self


class CachePolicy(CacheSettings):
    """The settings of a capability; `revision` counts their changes: no result outlives one."""

    revision: int = Field(default=0, ge=0)
