"""The material of programs: choices, read from bytes, and the names in scope where they are
made."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TypeVar

T = TypeVar("T")
MAX_DEPTH = 10


@dataclass(frozen=True)
class Function:
    """A local function. `first`: its first argument, chosen so that it ends."""

    name: str
    is_async: bool
    first: str = ""
    is_value: bool = True
    """Whether it may be passed on, to be called with anything."""


@dataclass(frozen=True)
class Scope:
    """The names and jumps that a piece of code may use."""

    names: tuple[str, ...] = ()
    """Locals that can be read."""

    lets: tuple[str, ...] = ()
    """Locals that can be assigned."""

    callees: tuple[str, ...] = ()
    """Local names of tools."""

    functions: tuple[Function, ...] = ()
    risky: bool = False
    """Whether calls should often fail here."""

    waits: bool = True
    """Whether `await` is allowed here."""

    exits: tuple[str, ...] = ()
    """Jumps that are allowed here, besides return and throw."""

    labels: int = 0
    """Number of enclosing labels."""

    def with_names(self, *names: str) -> "Scope":
        """Return the same scope with more locals."""
        return replace(self, names=(*self.names, *names))

    def inside(self, *parameters: str, waits: bool) -> "Scope":
        """Return the scope of the body of a function that is written here."""
        return replace(self.with_names(*parameters), waits=waits, exits=(), labels=0)


class Choices:
    """Decisions of the generator, one byte each. The first option is the simplest, and the only one
    when the bytes have run out: so fewer and smaller bytes make a simpler program."""

    def __init__(self, choices: bytes) -> None:
        self._choices = iter(choices)
        self._left = 10 * (2 + self.below(8))
        self._depth = 0

    def below(self, count: int) -> int:
        """Return a number from 0."""
        return next(self._choices, 0) % count

    def one_in(self, count: int) -> bool:
        """Return true one time of so many."""
        return self.below(count) == count - 1

    def among(self, options: Sequence[T]) -> T:
        """Return one of several."""
        return options[self.below(len(options))]

    def pick(self, scope: Scope, *makers: tuple[int, Callable[[Scope], str]]) -> str:
        """Return the text of one of several makers; each with its weight."""
        bounds = list(accumulate(weight for weight, _ in makers))
        number = self.below(bounds[-1])
        make = next(make for bound, (_, make) in zip(bounds, makers, strict=True) if number < bound)
        self._left -= 1
        self._depth += 1
        written = make(scope)
        self._depth -= 1
        return written

    @property
    def is_enough(self) -> bool:
        """Whether only simple code may follow: the deeper, the likelier."""
        return self._left <= 0 or self.below(MAX_DEPTH) < self._depth
