"""Settings for answering a capability's call with an earlier run's result."""

from collections.abc import Mapping
from typing import Final, Literal, Self, cast

from pydantic import Field, model_validator

from pml_common.contracts.base import Contract

MEMOIZED_S: Final = 3600
"""The default `ttl_s` of `memoize`."""
MEMOIZED_AT_MOST_S: Final = 7 * 24 * 3600
PERSISTENT_AT_MOST_S: Final = 10 * 365 * 24 * 3600


class CacheSettings(Contract):
    """Cache settings of a capability, chosen by a person; `ttl_s` counts from the end of the run.

    `memoize` caches results for `ttl_s`, by default an hour; `persistent` for `ttl_s` or, without
    it, until the code or these settings change. `force` also caches capabilities that may have side
    effects.
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
    """The stored settings of a capability; each change increments `revision` and invalidates cached
    results."""

    revision: int = Field(default=0, ge=0)
