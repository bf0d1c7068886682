"""Loops of generated programs. Every one ends: it counts, or runs over few items."""

from abc import abstractmethod
from dataclasses import replace
from typing import Final

from services.analyzer.tests.generated.choices import Scope
from services.analyzer.tests.generated.expressions import BOX
from services.analyzer.tests.generated.parallel import Parallel

_COUNTER: Final = "@9@"


class Loops(Parallel):
    """Writes all kinds of loops, with labels, breaks and continues."""

    def loop(self, scope: Scope) -> str:
        """Write one loop; some have a label."""
        label = f"l{scope.labels}"
        is_labelled = self.one_in(3)
        exits = [*scope.exits, "break", "continue"]
        inner = replace(scope, exits=tuple(dict.fromkeys(exits)))
        if is_labelled:
            names = (f"break {label}", f"continue {label}")
            inner = replace(inner, labels=scope.labels + 1, exits=(*inner.exits, *names))
        return self.pick(
            inner,
            (6, lambda s: self._for_of(scope, s, label if is_labelled else "")),
            (3, lambda s: self._for(scope, s, label if is_labelled else "")),
            (3, lambda s: self._while(scope, s, label if is_labelled else "")),
            (2, lambda s: self._for_in(scope, s, label if is_labelled else "")),
            (2, lambda s: self._do(scope, s, label if is_labelled else "")),
            (1, lambda s: self._endless(s, label if is_labelled else "")),
        )

    def _for_of(self, scope: Scope, inner: Scope, label: str) -> str:
        wait, items, pairs = "", self.items(scope), self.one_in(6)
        if pairs:
            items = f"[[],~[{self.value(scope)}]]"
        if scope.waits and not pairs and self.one_in(4):
            wait, items = "~await", self.among((items, f"[{self.call(scope)},~{self.call(scope)}]"))
        left, name = self.among(
            (
                ("const @8@", "@8@"),
                ("let @8@", "@8@"),
                (f"{BOX}.p", f"{BOX}.p"),
                (f"const [@8@~=~{self.value(scope)}]", "@8@") if pairs else ("const @8@", "@8@"),
            )
        )
        return f"{_head(label)}for{wait}~({left} of {items})~{self.round(inner.with_names(name))}"

    def _for_in(self, scope: Scope, inner: Scope, label: str) -> str:
        over = self.among(("args.o", "{~a:~1,~b:~2~}", "args.list", f"Object({self.value(scope)})"))
        return f"{_head(label)}for~(const @8@ in {over})~{self.round(inner.with_names('@8@'))}"

    def _for(self, scope: Scope, inner: Scope, label: str) -> str:
        first = self.value(scope) if self.one_in(4) else "0"
        more = f"~&&~{self.value(scope)}" if self.one_in(3) else ""
        step = f",~{self.value(scope)}" if self.one_in(4) else ""
        head = f"let @8@~=~{first},~{_COUNTER}~=~0;~{_COUNTER}~<~2{more};~{_COUNTER}++{step}"
        return f"{_head(label)}for~({head})~{self.round(inner.with_names('@8@'))}"

    def _while(self, scope: Scope, inner: Scope, label: str) -> str:
        condition = self.condition(scope, 2)
        round_ = self.round(inner)
        return f"{{~let {_COUNTER}~=~0§~{_head(label)}while~({condition})~{round_}~}}"

    def _do(self, scope: Scope, inner: Scope, label: str) -> str:
        condition = self.condition(scope, 2)
        round_ = self.round(inner)
        text = f"do~{round_}~while~({condition})§"
        return f"{{~let {_COUNTER}~=~1§~{_head(label)}{text}~}}"

    def _endless(self, inner: Scope, label: str) -> str:
        head = self.among(("for~(;;)", "while~(true)"))
        stop = f"if~({_COUNTER}++~>~1)~break§~"
        return f"{{~let {_COUNTER}~=~0§~{_head(label)}{head}~{self.block(inner, opening=stop)}~}}"

    def condition(self, scope: Scope, most: int) -> str:
        """Write a condition that is true for so many rounds at most."""
        counted = f"{_COUNTER}++~<~{most}"
        return counted if self.one_in(2) else f"{counted}~&&~{self.value(scope)}"

    def round(self, scope: Scope) -> str:
        """Write the body of a loop; some are a single statement."""
        kind = self.below(6)
        if kind == 4:
            return self.simple(scope)
        block = self.block(scope, least=1)
        return f"if~({self.value(scope)})~{block}" if kind == 5 else block

    @abstractmethod
    def simple(self, scope: Scope) -> str:
        """Write one short statement."""


def _head(label: str) -> str:
    return f"{label}:~" if label else ""
