"""An independent check that every call that arrived was shown with its arguments, or approved by
itself."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from tests.binding.expected import (
    Computed,
    Either,
    Expected,
    Fields,
    Items,
    Json,
    Known,
    Result,
    at,
    part,
    same,
)
from tests.binding.shown import ShownCall, has_computed, may_be_missing


@dataclass(frozen=True)
class Arrived:
    """A call that a tool server received, and its result."""

    tool: str
    args: Mapping[str, Json]
    result: Json

    def __str__(self) -> str:
        return f"{self.tool}({self.args})"


@dataclass(frozen=True)
class Asked:
    """A call that a person approved by itself; `node` is its claimed node."""

    tool: str
    args: Mapping[str, Json]
    node: str = ""

    def is_same(self, call: Arrived) -> bool:
        """Whether this is the approved call."""
        return self.tool == call.tool and same(dict(self.args), dict(call.args))


@dataclass(frozen=True)
class Verdict:
    """Violations (`holes`), and the covers of the other calls."""

    holes: tuple[str, ...]
    bound: int = 0
    computed: int = 0
    asked: int = 0


@dataclass(frozen=True)
class Oracle:
    """Judges the calls of one workflow, in order of arrival."""

    shown: Sequence[ShownCall]
    asked: Sequence[Asked]
    arrived: Sequence[Arrived]

    def verdict(self, judged: Sequence[int]) -> Verdict:
        """Judge the calls at these positions of `arrived`: each needs its own cover."""
        covers: dict[int, list[int]] = {index: self._covers(index) for index in judged}
        owners: dict[int, int] = {}
        holes = [
            f"{self.arrived[index]} was neither shown nor asked about"
            for index in judged
            if not self._cover(index, covers, owners, set())
        ]
        by = [self._kind(cover) for cover in owners]
        free = [self._kind(covers[index][0]) for index in judged if self._is_free(covers[index])]
        kinds = [*by, *free]
        return Verdict(
            tuple(holes), kinds.count("bound"), kinds.count("computed"), kinds.count("asked")
        )

    def is_bound_at(self, node: str) -> bool:
        """Whether any of a node's arguments was shown as known."""
        return any(
            not isinstance(expected, Computed)
            for one in self.shown
            if one.node == node
            for expected in one.arguments.fields.values()
        )

    def fits_at(self, node: str, call: Arrived, results: Mapping[str, Sequence[object]]) -> bool:
        """Whether a call was shown at this node; `results` are those so far, by node."""
        told = _Told(self.shown, (), (), results)
        return any(
            told.fits(one.arguments, call.args)
            for one in self.shown
            if (one.node, one.tool) == (node, call.tool)
        )

    def fits(self, expected: Expected, value: object) -> bool:
        """Whether a value was shown."""
        return self._fits(expected, value, ())

    def _covers(self, index: int) -> list[int]:
        """Covers of a call: shown calls by their number, then approved ones."""
        call, before = self.arrived[index], self.arrived[:index]
        shown = [
            number
            for number, one in enumerate(self.shown)
            if one.tool == call.tool and self._fits(one.arguments, call.args, before)
        ]
        asked = [
            len(self.shown) + number for number, one in enumerate(self.asked) if one.is_same(call)
        ]
        return sorted([*shown, *asked], key=lambda cover: not self._repeats(cover))

    def _repeats(self, cover: int) -> bool:
        return cover < len(self.shown) and self.shown[cover].repeats

    def _is_free(self, covers: Sequence[int]) -> bool:
        """Whether one of them covers any number of calls."""
        return any(map(self._repeats, covers))

    def _kind(self, cover: int) -> str:
        if cover >= len(self.shown):
            return "asked"
        return "computed" if has_computed(self.shown[cover].arguments) else "bound"

    def _cover(
        self,
        index: int,
        covers: Mapping[int, Sequence[int]],
        owners: dict[int, int],
        tried: set[int],
    ) -> bool:
        """Find a cover for the call; others may exchange theirs (a matching)."""
        if self._is_free(covers[index]):
            return True
        for cover in covers[index]:
            if cover in tried:
                continue
            tried.add(cover)
            if cover not in owners or self._cover(owners[cover], covers, owners, tried):
                owners[cover] = index
                return True
        return False

    def _fits(self, expected: Expected, value: object, before: Sequence[Arrived]) -> bool:
        """Whether a value was shown."""
        inside = partial(self._fits, before=before)
        match expected:
            case Known(known):
                return same(known, value)
            case Computed():
                return True
            case Either(options):
                return any(inside(option, value) for option in options)
            case Result(node, path):
                return any(same(each, value) for each in self._results(node, path, before))
            case Items(items, closed):
                return (
                    isinstance(value, list)
                    and (len(value) == len(items) if closed else len(value) >= len(items))  # pyright: ignore[reportUnknownArgumentType]
                    and all(map(inside, items, value))  # pyright: ignore[reportUnknownArgumentType]
                )
            case Fields():
                return isinstance(value, dict) and self._fields(expected, value, before)  # pyright: ignore[reportUnknownArgumentType]

    def _fields(
        self, expected: Fields, given: Mapping[str, object], before: Sequence[Arrived]
    ) -> bool:
        """Whether every present field was shown, and every shown one is present."""
        there = all(
            self._fits(part(expected, (name,)), value, before) for name, value in given.items()
        )
        return there and all(
            name in given or may_be_missing(one) for name, one in expected.fields.items()
        )

    def _results(
        self, node: str, path: Sequence[str | int | None], before: Sequence[Arrived]
    ) -> list[object]:
        """The values at a path in the earlier results of a node: of its tool, called as shown, or
        with arguments that a person approved there."""
        shown = [one for one in self.shown if one.node == node]
        asked = [one for one in self.asked if one.node == node]
        return [
            found
            for number, call in enumerate(before)
            if any(one.is_same(call) for one in asked)
            or any(
                call.tool == one.tool and self._fits(one.arguments, call.args, before[:number])
                for one in shown
            )
            for found in at(call.result, path)
        ]


@dataclass(frozen=True)
class _Told(Oracle):
    """Knows which results belong to which node."""

    results: Mapping[str, Sequence[object]]

    def _results(
        self, node: str, path: Sequence[str | int | None], before: Sequence[Arrived]
    ) -> list[object]:
        return [found for result in self.results.get(node, ()) for found in at(result, path)]
