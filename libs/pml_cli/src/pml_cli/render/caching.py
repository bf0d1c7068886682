"""A cache policy in words."""

from collections.abc import Mapping


def cached_how(cache: Mapping[str, object]) -> str:
    """How results are cached, and for how long."""
    policy, ttl_s = cache["policy"], cache.get("ttl_s")
    if policy == "none":
        return "not cached"
    time = "until its code or this policy changes" if ttl_s is None else f"for {ttl_s} s"
    forced = ", although it may change something" if cache.get("force") else ""
    return f"{policy}, {time}{forced}"
