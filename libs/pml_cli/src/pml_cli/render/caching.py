"""Rendering of cache policies."""

from collections.abc import Mapping


def cached_how(cache: Mapping[str, object]) -> str:
    """Describe a cache policy and its duration."""
    policy, ttl_s = cache["policy"], cache.get("ttl_s")
    if policy == "none":
        return "not cached"
    time = "until its code or this policy changes" if ttl_s is None else f"for {ttl_s} s"
    forced = ", although it may have effects" if cache.get("force") else ""
    return f"{policy}, {time}{forced}"
