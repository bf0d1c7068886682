"""Cache settings of a capability."""

import pytest
from pydantic import ValidationError

from pml_common.contracts.caching import CachePolicy, CacheSettings


@pytest.mark.parametrize(
    ("given", "kept_s"),
    [
        ({}, None),
        ({"policy": "memoize"}, 3600),
        ({"policy": "memoize", "ttl_s": 600}, 600),
        ({"policy": "persistent"}, None),
        ({"policy": "persistent", "ttl_s": 30 * 24 * 3600, "force": True}, 30 * 24 * 3600),
    ],
)
def test_results_are_cached_for_the_given_or_default_time(
    given: dict[str, object], kept_s: int | None
) -> None:
    assert CacheSettings.model_validate(given).ttl_s == kept_s


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"policy": "none", "ttl_s": 60}, "neither ttl_s nor force"),
        ({"policy": "none", "force": True}, "neither ttl_s nor force"),
        ({"policy": "memoize", "ttl_s": 8 * 24 * 3600}, "7 days"),
        ({"policy": "memoize", "ttl_s": 0}, "greater than or equal to 1"),
        ({"policy": "always"}, "'none', 'memoize' or 'persistent'"),
        ("memoize", "valid dictionary"),
    ],
)
def test_inconsistent_settings_are_refused_with_the_reason(given: object, why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        CacheSettings.model_validate(given)


def test_without_a_choice_nothing_is_cached() -> None:
    assert CachePolicy() == CachePolicy(policy="none", ttl_s=None, force=False, revision=0)
