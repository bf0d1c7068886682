"""Declarations of generated programs: variables, tools under other names, functions."""

from dataclasses import replace

from services.analyzer.tests.generated.choices import Function, Scope
from services.analyzer.tests.generated.parallel import Parallel

_FUNCTIONS = tuple(f"@{number}@" for number in range(11, 15))
_COUNT = "@19@"
_OWN = "@15@"
"""The name of a function expression inside itself."""


class Declarations(Parallel):
    """Writes declarations, and adds their names to the scope."""

    _made = 0
    """Functions so far."""

    def declaration(self, scope: Scope, taken: set[str]) -> tuple[str, Scope]:
        """Write one declaration; `taken` are the other names of the block."""
        kind = self.below(5)
        if kind < 2 and self._made < len(_FUNCTIONS):
            return self.function(scope)
        if kind == 2 and self._made + 1 < len(_FUNCTIONS) and self.one_in(6):
            return self.each_other(scope)
        if kind == 3 and not {"@17@", "@18@"} & taken:
            return self.alias(scope, taken)
        return self.variable(scope, taken)

    def variable(self, scope: Scope, taken: set[str]) -> tuple[str, Scope]:
        """Write const, let or var, destructured or not."""
        free = [name for name in ("@4@", "@5@") if name not in taken]
        if not free:
            return f"void {self.value(scope)}§", scope
        name = free[0]
        taken.add(name)
        value = self.value(scope)
        target = self.among(
            (
                (name, value),
                (f"{{~k:~{name}~=~{self.value(scope)}~}}", f"Object({value})"),
                (f"[{name}~=~{self.leaf(scope)}]", f"[{value}]"),
                (f"{{~a:~{{~b:~{name}~}}~=~{{}}~}}", f"Object({value})"),
                (f"[,~...{name}]", f"[1,~{value}]"),
            )
        )
        word = self.among(("const", "let"))
        after = scope.with_names(name)
        if word == "let":
            after = replace(after, lets=(*scope.lets, name))
        return f"{word} {target[0]}~=~{target[1]}§", after

    def alias(self, scope: Scope, taken: set[str]) -> tuple[str, Scope]:
        """Write a tool or a server under a local name."""
        taken |= {"@17@", "@18@"}
        text, callee = self.among(
            (
                ("const @17@~=~mcp.fs.read§", "@17@"),
                ("const {~fs:~@18@~}~=~mcp§", "@18@.stat"),
                ("const {~read:~@17@~}~=~mcp.fs§", "@17@"),
                ("const @18@~=~mcp.fs,~@17@~=~@18@.read§", "@17@"),
                ("let @17@§~@17@~=~mcp.fs.write§", "@17@"),
            )
        )
        return text, replace(scope, callees=(*scope.callees, callee))

    def function(self, scope: Scope) -> tuple[str, Scope]:
        """Write a local function that later code may call, often more than once."""
        self._made += 1
        name = _FUNCTIONS[self._made - 1]
        is_async, counts = self.below(4) > 0, self.one_in(4)
        made = Function(name, is_async, str(self.below(3)) if counts else "")
        written = self.recursive(made, scope, (made,)) if counts else self.written(made, scope)
        return written, replace(scope, functions=(*scope.functions, made))

    def each_other(self, scope: Scope) -> tuple[str, Scope]:
        """Write two functions that call each other."""
        self._made += 2
        names = _FUNCTIONS[self._made - 2 : self._made]
        made = tuple(Function(name, is_async=True, first="2") for name in names)
        after = replace(scope, functions=(*scope.functions, *made))
        return "~".join(self.recursive(function, scope, made) for function in made), after

    def written(self, made: Function, scope: Scope) -> str:
        """Write a function that does not call itself."""
        text, parameters = self.parameters(scope)
        inner = scope.inside(*parameters, waits=made.is_async)
        word = "async " if made.is_async else ""
        kind = self.below(5)
        if kind == 0:
            return f"{word}function {made.name}({text})~{self.body(inner)}"
        if kind == 1:
            return f"const {made.name}~=~{word}({text}) =>~{self.value(inner)}§"
        if kind == 2:
            return f"const {made.name}~=~{word}function~({text})~{self.body(inner)}§"
        return f"const {made.name}~=~{word}({text}) =>~{self.body(inner)}§"

    def recursive(self, made: Function, scope: Scope, group: tuple[Function, ...]) -> str:
        """Write a function that may call those of its group, itself among them, with one less."""
        again = tuple(
            replace(function, first=f"{_COUNT}~-~1", is_value=False) for function in group
        )
        others = tuple(f for f in scope.functions if _COUNT not in f.first)
        inner = replace(scope.inside("@6@", waits=made.is_async), functions=(*others, *again))
        stop = f"if~(!({_COUNT}~>~0~&&~{_COUNT}~<~4))~return {self.leaf(inner)}§~"
        body = self.block(inner, ending=True, opening=stop)
        word = "async " if made.is_async else ""
        kind = self.below(4) if len(group) == 1 and made.name != _OWN else 0
        if kind == 2:
            return f"const {made.name}~=~{word}({_COUNT},~@6@) =>~{body}§"
        if kind == 3:
            own = body.replace(f"{made.name}(", f"{_OWN}(")
            return f"const {made.name}~=~{word}function {_OWN}({_COUNT},~@6@)~{own}§"
        return f"{word}function {made.name}({_COUNT},~@6@)~{body}"

    def parameters(self, scope: Scope) -> tuple[str, tuple[str, ...]]:
        """Return the text in the parentheses, and the names it declares."""
        return self.among(
            (
                ("@6@", ("@6@",)),
                ("", ()),
                ("@6@,~@7@~=~1", ("@6@", "@7@")),
                (f"@6@~=~{self.leaf(scope)}", ("@6@",)),
                ("...@6@", ("@6@",)),
                ("{~a:~@6@~=~2~}~=~{},~@7@", ("@6@", "@7@")),
            )
        )
