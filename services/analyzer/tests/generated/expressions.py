"""Expressions of generated programs."""

from abc import abstractmethod
from typing import Final

from services.analyzer.tests.generated.choices import Choices, Function, Scope

SURE: Final = ("fs.read", "fs.stat", "fs.list", "git.status", "json.parse")
RISKY: Final = ("http.post", "fs.write")
"""Tools that the recorder rejects now and then."""

BOX: Final = "@16@"
"""An object of every program, for writes to members."""

_LITERALS: Final = tuple(
    ["1", "null", "'s'", "0", "true", "undefined", "[]", "Object()", "[1,~2]", "`t${1}`", "'😀'"]
)
_FROM_CALLER: Final = ("args.a", "free", "args.list", "args.o", "args.none", "args.n")
_OPERATORS: Final = ("===", "+", "!==", ">", "<=")
_SHORT: Final = ("&&", "||", "??")
_METHODS: Final = ("map", "filter", "some", "every", "find", "flatMap", "findIndex", "forEach")


class Expressions(Choices):
    """Writes values, calls of tools, and the syntax around them."""

    def value(self, scope: Scope) -> str:
        """Write any expression, for any position."""
        if self.is_enough:
            return self.leaf(scope)
        return self.pick(
            scope,
            (6, self.leaf),
            (20, self.awaited),
            (6, self.short_circuit),
            (5, self.conditional),
            (4, self.composed),
            (4, self.operation),
            (3, self.mixed),
            (1, lambda s: f"({self.value(s)}).k"),
            (4, self.assignment),
            (3, self.optional),
            (1, self.change),
            (3, self.method),
            (2, self.sequence),
            (24 if scope.functions else 1, self.invoked),
            (5, self.parallel),
            (4, self.chained),
            (3, self.immediate),
        )

    def leaf(self, scope: Scope) -> str:
        """Write a value without side effects."""
        kind = self.below(4)
        if kind == 0 or (kind == 3 and not scope.names):
            return self.among(_LITERALS)
        return self.among(_FROM_CALLER) if kind == 1 else self.among(scope.names or _LITERALS)

    def items(self, scope: Scope) -> str:
        """Write an array of few items."""
        kind = self.below(7)
        if kind == 0:
            return "[1,~2]"
        if kind == 6:
            return f"[].concat({self.parallel(scope)})"
        if kind == 1:
            return "args.list"
        if kind == 2:
            return f"[{self.value(scope)},~{self.value(scope)}]"
        if kind == 3:
            return f"[].concat({self.value(scope)})"
        return "['s']" if kind == 4 else "[]"

    def call(self, scope: Scope) -> str:
        """Write a call of a tool, not awaited."""
        tool = self.among(RISKY if self.one_in(2 if scope.risky else 5) else SURE)
        server, name = tool.split(".")
        given = self.given(scope)
        kind = self.below(14)
        if kind == 8:
            return f"mcp['{server}'].{name}({given})"
        if kind == 9:
            return f"mcp.{server}?.{name}({given})"
        if kind == 10:
            return f"mcp?.{server}.{name}?.({given})"
        if kind == 11:
            return f"(mcp.{server}.{name})({given})"
        if kind == 12:
            return f"mcp.call('{server}:{name}',~{given or '{}'})"
        if kind > 5 and scope.callees:
            return f"{self.among(scope.callees)}({given})"
        return f"mcp.{tool}({given})"

    def given(self, scope: Scope) -> str:
        """Write the arguments of a call."""
        kind = self.below(8)
        if kind == 6:
            return f"{{~v:~1,~...({self.value(scope)})~}}"
        if kind == 7:
            return ""
        return f"{{~v:~{self.value(scope)}~}}"

    def awaited(self, scope: Scope) -> str:
        """Write a call of a tool, awaited where that is possible."""
        return f"(await~{self.call(scope)})" if scope.waits else self.call(scope)

    def short_circuit(self, scope: Scope) -> str:
        """Write a choice between two values."""
        return f"({self.value(scope)}~{self.among(_SHORT)}~{self.value(scope)})"

    def mixed(self, scope: Scope) -> str:
        """Write nested choices, without redundant parentheses."""
        one, two, three = (self.value(scope) for _ in range(3))
        return self.among(
            (
                f"({one}~&&~{two}~||~{three})",
                f"({one}~||~{two}~&&~{three})",
                f"({one}~??~{two}~??~{three})",
                f"({one}~?~{two}~:~{three}~?~1~:~{self.value(scope)})",
                f"({one}~===~1~||~!{two}~&&~{three})",
            )
        )

    def conditional(self, scope: Scope) -> str:
        """Write `? :`."""
        return f"({self.value(scope)}~?~{self.value(scope)}~:~{self.value(scope)})"

    def composed(self, scope: Scope) -> str:
        """Write a value made of others."""
        one, other = self.value(scope), self.value(scope)
        return self.among(
            (
                f"[{one},~{other}]",
                f"Object({{~a:~{one},~k:~{other}~}})",
                f"`${{{one}}}-${{{other}}}`",
                f"[...[{one}],~{other}]",
                f"Object({{~...({one}),~[{other}]:~1~}})",
                f"Math.max(...[1,~{one}])",
            )
        )

    def operation(self, scope: Scope) -> str:
        """Write an operator over values."""
        if self.one_in(3):
            return f"(!{self.value(scope)})"
        left, operator, right = self.value(scope), self.among(_OPERATORS), self.value(scope)
        if operator == ">" and right.startswith("`"):  # refused: it may be a tag's type arguments
            right = f"({right})"
        return f"({left}~{operator}~{right})"

    def assignment(self, scope: Scope) -> str:
        """Write an assignment to a local or a member, also by `&&=`, `||=` and `??=`."""
        member = self.among((f"{BOX}.p", f"{BOX}.q", f"{BOX}['r']"))
        target = self.among(scope.lets) if scope.lets and self.below(3) else member
        if self.one_in(6) and target in scope.lets:
            return f"([{target}~=~{self.value(scope)}]~=~[{self.value(scope)}])"
        operator = self.among(("=", "&&=", "||=", "??=", "+="))
        return f"({target}~{operator}~{self.value(scope)})"

    def optional(self, scope: Scope) -> str:
        """Write a chain that may end early."""
        chain = self.among(("?.field", "?.a?.b", "?.[0]", "?.field?.[0]"))
        if self.one_in(3):
            return f"({self.value(scope)})?.[{self.value(scope)}]"
        return f"({self.value(scope)}){chain}"

    def change(self, scope: Scope) -> str:
        """Write an assignment to a part of a value that may have come from outside."""
        part = self.among(("a", "field", "k", "0"))
        return f"(Object({self.leaf(scope)})['{part}']~=~{self.leaf(scope)})"

    def sequence(self, scope: Scope) -> str:
        """Write the comma operator."""
        return f"({self.value(scope)},~{self.value(scope)})"

    def method(self, scope: Scope) -> str:
        """Write an array method with a synchronous callback."""
        body = self.callback(scope)
        items = self.items(scope)
        if scope.waits and self.one_in(6):
            inner = scope.inside("@6@", "@7@", waits=True)
            text = self.block(inner, ending=True, opening="await~@6@§~")
            return f"(await~{items}.reduce(async (@6@,~@7@) =>~{text},~null))"
        if self.one_in(6):
            inner = self.value(scope.inside("@6@", "@7@", waits=False))
            return f"{items}.reduce((@6@,~@7@) =>~{inner},~{self.value(scope)})"
        return f"{items}.{self.among(_METHODS)}({body})"

    def callback(self, scope: Scope) -> str:
        """Write a synchronous function of one parameter, as a callback."""
        inner = scope.inside("@6@", waits=False)
        kind = self.below(6)
        plain = [f.name for f in scope.functions if f.is_value and not f.is_async]
        if kind == 5 and plain:
            return self.among(plain)
        if kind == 4:
            return f"function~(@6@)~{self.body(inner)}"
        if kind == 3:
            return f"(@6@) =>~{self.body(inner)}"
        if self.one_in(6):
            return f"(@6@) =>~({{~a:~{self.value(inner)}~}})"
        return f"@6@ =>~{self.value(inner)}" if kind == 2 else f"(@6@) =>~{self.value(inner)}"

    def invoked(self, scope: Scope) -> str:
        """Write a call of a local function; an asynchronous one is awaited."""
        usable = [function for function in scope.functions if scope.waits or not function.is_async]
        if not usable:
            return self.leaf(scope)
        function = self.among(usable)
        first = function.first or self.value(scope)
        given = f"{first},~{self.value(scope)}" if self.one_in(3) else first
        called = f"{function.name}({given})"
        return f"(await~{called})" if scope.waits else called

    def immediate(self, scope: Scope) -> str:
        """Write a function called where it is written."""
        inner = scope.inside("@6@", waits=scope.waits)
        word, wait = ("async ", "await~") if scope.waits else ("", "")
        kind, given = self.below(5), self.value(scope)
        if kind == 4:
            made = Function("@15@", is_async=scope.waits)
            return f"({wait}({self.recursive(made, scope, (made,))})({self.below(3)}))"
        if kind == 0:
            return f"({wait}({word}(@6@) =>~{self.value(inner)})({given}))"
        if kind == 1:
            return f"({wait}({word}(@6@) =>~{self.body(inner)})({given}))"
        if kind == 2:
            return f"({wait}({word}function~(@6@)~{self.body(inner)})({given}))"
        plain = scope.inside(waits=False)
        return f"(() =>~{self.value(plain)})()"

    @abstractmethod
    def recursive(self, made: Function, scope: Scope, group: tuple[Function, ...]) -> str:
        """Write a function that may call those of its group, with one less."""

    @abstractmethod
    def block(
        self, scope: Scope, *, ending: bool = False, opening: str = "", least: int = 0
    ) -> str:
        """Write `{ … }`."""

    @abstractmethod
    def body(self, scope: Scope) -> str:
        """Write the block of a function."""

    @abstractmethod
    def parallel(self, scope: Scope) -> str:
        """Write calls side by side."""

    @abstractmethod
    def chained(self, scope: Scope) -> str:
        """Write `.then(…)` and the like."""
