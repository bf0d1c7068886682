"""A bounded set of keys."""

from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class RecentKeys(Generic[K]):
    """The keys added last, at most `most`."""

    def __init__(self, most: int) -> None:
        self._keys: dict[K, None] = {}
        self._most = most

    def __contains__(self, key: K) -> bool:
        return key in self._keys

    def add(self, keys: Iterable[K]) -> None:
        """Add keys; those added first are dropped."""
        self._keys |= dict.fromkeys(keys)
        while len(self._keys) > self._most:
            del self._keys[next(iter(self._keys))]

    def clear(self) -> None:
        """Remove all keys."""
        self._keys.clear()
