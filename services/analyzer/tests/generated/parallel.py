"""Calls side by side, and chains of promises, in generated programs."""

from typing import Final

from services.analyzer.tests.generated.choices import Scope
from services.analyzer.tests.generated.expressions import Expressions

_TOGETHER: Final = ("all", "all", "allSettled", "race", "any")


class Parallel(Expressions):
    """Writes `Promise.all` and its variants over arrays and over `.map(…)`; chains."""

    def parallel(self, scope: Scope) -> str:
        """Write calls side by side, awaited where that is possible."""
        if not scope.waits:
            return self.call(scope)
        how = self.among(_TOGETHER)
        over = self.mapped(scope) if self.one_in(2) else self.strands(scope)
        return f"(await~Promise.{how}({over}))"

    def strands(self, scope: Scope) -> str:
        """Write an array of promises."""
        return f"[{',~'.join(self.strand(scope) for _ in range(1 + self.below(3)))}]"

    def strand(self, scope: Scope) -> str:
        """Write one promise, not awaited."""
        inner = scope.inside(waits=True)
        return self.pick(
            scope,
            (6, self.call),
            (3, lambda _: f"(async () =>~{self.body(inner)})()"),
            (2, lambda _: f"(async () =>~{self.value(inner)})()"),
            (3, self.started),
            (2, self.chain),
            (1, self.value),
            (1, lambda s: f"({self.value(s)}~?~{self.call(s)}~:~null)"),
            (1, lambda s: f"({self.value(s)}~&&~{self.call(s)})"),
            (1, lambda s: f"Promise.all({self.strands(s)})"),
            (1, lambda s: f"...{self.mapped(s)}"),
        )

    def started(self, scope: Scope) -> str:
        """Write a call of a local function, not awaited."""
        if not scope.functions:
            return self.call(scope)
        function = self.among(scope.functions)
        return f"{function.name}({function.first or self.value(scope)})"

    def mapped(self, scope: Scope) -> str:
        """Write a promise for each item of an array."""
        inner, plain = scope.inside("@6@", waits=True), scope.inside("@6@", waits=False)
        items = self.items(scope)
        function = self.pick(
            scope,
            (4, lambda _: f"async (@6@) =>~{self.body(inner)}"),
            (3, lambda _: f"async (@6@) =>~{self.value(inner)}"),
            (2, lambda _: f"(@6@) =>~{self.call(plain)}"),
            (1, lambda _: f"async @6@ =>~{self.value(inner)}"),
            (1, lambda _: f"async function~(@6@)~{self.body(inner)}"),
            (2, self.named),
        )
        return f"{items}.map({function})"

    def named(self, scope: Scope) -> str:
        """Return the name of a local function, as a callback."""
        usable = [function.name for function in scope.functions if function.is_value]
        return self.among(usable or ["(@6@) =>~@6@"])

    def chained(self, scope: Scope) -> str:
        """Write a chain, awaited where that is possible."""
        return f"(await~{self.chain(scope)})" if scope.waits else self.call(scope)

    def chain(self, scope: Scope) -> str:
        """Write `.then(…).catch(…).finally(…)` on a call."""
        links = "".join(self.link(scope) for _ in range(1 + self.below(2)))
        return f"{self.call(scope)}{links}"

    def link(self, scope: Scope) -> str:
        """Write one link of a chain."""
        kind = self.below(7)
        if kind < 3:
            return f".then({self.handler(scope, '@6@')})"
        if kind == 3:
            return f".catch({self.handler(scope, '@7@')})"
        if kind == 4:
            return f".finally({self.handler(scope)})"
        if kind == 5:
            return f".then({self.handler(scope, '@6@')},~{self.handler(scope, '@7@')})"
        return f".then({self.named(scope)})"

    def handler(self, scope: Scope, *parameters: str) -> str:
        """Write a callback of a promise."""
        waits = self.one_in(2)
        inner = scope.inside(*parameters, waits=waits)
        head = f"{'async ' if waits else ''}({',~'.join(parameters)}) =>~"
        return head + (self.body(inner) if self.one_in(3) else self.value(inner))
