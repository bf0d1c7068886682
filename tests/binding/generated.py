"""Generated programs with arguments that an approval can bind: literals, parts of the caller's
arguments with defaults, parts of results, list elements, spreads, in objects and lists, in local
functions, callbacks and capabilities; and arguments that it cannot bind."""

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Final
from uuid import UUID, uuid5

from pml_analysis.analysis import Analysis, Rejection, analyze
from pml_analysis.capability_reading import read_capability
from pml_analysis.decision.capabilities import Library
from pml_common.contracts.capability import CapabilityDescription
from pml_common.contracts.decision import Policy
from pml_common.contracts.tool import JsonObject, ToolAnnotations, ToolDefinition
from services.analyzer.tests.generated.choices import Scope
from services.analyzer.tests.generated.statements import Statements
from services.analyzer.tests.generated.text import render

ARGS: Final[JsonObject] = {
    "a": "A",
    "s": "fs",
    "n": 2,
    "zero": 0,
    "free": "F",
    "none": None,
    "list": [1, "two", {"a": 3}],
    "o": {"k": 1, "v": "V", "field": [0], "deep": {"w": True}},
    "rows": [{"a": 1, "k": "x"}, {"a": 2, "k": "y"}],
}
TAKES: Final[dict[str, tuple[str, ...]]] = {
    "fs:read": ("v", "w", "x", "k"),
    "fs:stat": ("v", "w", "x"),
    "fs:list": ("v", "w", "x", "a", "k", "field", "items", "meta", "deep"),
    "fs:write": ("v", "w", "x", "a", "k", "field", "items", "meta", "deep"),
    "git:status": (),
    "json:parse": (),
    "http:post": (),
}
"""The declared arguments of each tool; empty: none are declared."""

TOOLS: Final = tuple(
    ToolDefinition(
        server=tool.partition(":")[0],
        name=tool.partition(":")[2],
        description="",
        input_schema={"type": "object", "properties": {name: {} for name in takes}},
        annotations=ToolAnnotations(read_only=False),
    )
    for tool, takes in TAKES.items()
)

_CAPABILITIES: Final = {
    "lib:put": "return await mcp.fs.write({ v: args.v, w: 'put' });",
    "lib:keep": "const { v = 7, w } = args; return await mcp.fs.write({ v, w, x: args.x ?? 'x' });",
    "lib:chain": """const seen = await mcp.fs.read({ v: args.v });
await mcp.fs.stat({ v: seen?.items?.[0]?.a, w: seen });
for (const item of seen?.items) await mcp.fs.list({ v: item.a, w: args.w });
return seen;""",
    "lib:relay": "return await capabilities.lib_keep({ v: args.w, w: { r: args.v } });",
    "lib:each": "for (const one of args.v) await mcp.fs.stat({ v: one, w: args.w }); return 1;",
    "lib:whole": "return await mcp.fs.write({ ...args, x: 1 });",
}
_NAMES: Final = UUID("d7c43bd2-34d2-4d57-8c0f-54d50d1de32c")
LIBRARY: Final = Library.of(
    [
        read_capability(
            CapabilityDescription(
                capability_id=uuid5(_NAMES, name),
                name=name,
                code=code,
                code_hash=uuid5(_NAMES, code).hex * 2,
            )
        )
        for name, code in _CAPABILITIES.items()
    ]
)


def _options(text: str) -> tuple[str, ...]:
    return tuple(one.strip() for line in text.strip().splitlines() for one in line.split(" | "))


_FROM_CALLER: Final = _options(
    """
args.a | args.n | free | args.o | args.o.deep.w | args.list[1] | args.rows[0].k
args.missing | args.none | args.missing ?? 'd' | args.n ?? 3 | args.zero || 4
args.none ?? 'd' | context.a | args.o?.field?.[0] | args.o.none
"""
)
_LITERALS: Final = _options(
    """
1 | 's' | null | true | -1.5 | '' | `t` | [1,~'2'] | {~a:~{~b:~[]~}~} | -0 | '😀'
undefined | 1e21 | 0x10 | '\\u00e9' | [[],~{}]
"""
)
_INSIDE: Final = _options(
    """
?.a | ?.k | ?.meta?.a?.b | ?.items?.[0]?.a | ?.items?.[1] |  | ?.field?.[1]?.b
?.meta | ?.items | .a | .missing | ?.['k'] | ?.items?.[5]?.a | ?.[1]
"""
)
_LISTS: Final = ("args.rows", "args.list", "args.o.field")
_NAMES_OF_RESULTS: Final = ("@4@", "@5@")
_FIRST: Final = "const @10@~=~await~mcp.fs.list({~v:~0,~w:~args.a~})§"


class Programs(Statements):
    """Generates programs like those of the analyzer's tests, with other arguments."""

    def given(self, scope: Scope) -> str:
        """The arguments of a call, mostly known before the run."""
        kind = self.below(12)
        if kind == 11:
            return super().given(scope)
        if kind == 10:
            return f"{{~v:~{self.fact(scope)},~...{self.whole(scope)},~w:~{self.fact(scope)}~}}"
        if kind == 9:
            return f"{{~...{self.whole(scope)},~x:~{self.fact(scope)}~}}"
        if kind == 8:
            key = self.among(("args.a", "`w`", "'x'"))
            return f"{{~v:~{self.fact(scope)},~[{key}]:~1~}}"
        names = ("v", "w", "x")[: 1 + self.below(3)]
        return f"{{~{',~'.join(f'{name}:~{self.fact(scope)}' for name in names)}~}}"

    def fact(self, scope: Scope) -> str:
        """One argument."""
        kind = self.below(12)
        if kind < 3:
            return self.among(_LITERALS)
        if kind < 6:
            return self.among(_FROM_CALLER)
        if kind < 9 and scope.names:
            return f"{self.among(scope.names)}{self.among(_INSIDE)}"
        if kind == 9:
            return f"{{~p:~{self.fact(scope)},~q:~[{self.fact(scope)}]~}}"
        if kind == 10:
            return f"[{self.fact(scope)},~{self.fact(scope)}]"
        return self.value(scope)

    def whole(self, scope: Scope) -> str:
        """A spread value."""
        options = ["args.o", "args.rows[0]", "args.missing", "{~v:~1~}", "(args.none ?? {})"]
        return self.among([*options, *(f"Object({name})" for name in scope.names[:1])])

    def call(self, scope: Scope) -> str:
        """A call of a tool, or of a capability."""
        if not self.one_in(7):
            return super().call(scope)
        name = self.among(tuple(_CAPABILITIES)).replace(":", "_")
        return f"capabilities.{name}({self.given(scope) or '{}'})"

    def items(self, scope: Scope) -> str:
        """A list, often the caller's or from a result."""
        kind = self.below(6)
        if kind < 2:
            return self.among(_LISTS)
        if kind < 4 and scope.names:
            return f"{self.among((*scope.names, '@10@'))}.items"
        return super().items(scope)

    def variable(self, scope: Scope, taken: set[str]) -> tuple[str, Scope]:
        """A variable, often a result or part of one."""
        free = [name for name in _NAMES_OF_RESULTS if name not in taken]
        if not free or not scope.waits or self.one_in(3):
            return super().variable(scope, taken)
        name, call = free[0], self.call(scope)
        taken.add(name)
        targets = (name, name, name, f"{{~a:~{name}~}}", f"{{~meta:~{{~a:~{name}~}}~}}")
        target = self.among((*targets, f"{{~items:~[{name}]~}}", f"{{~k:~{name}~=~7~}}"))
        word = "const" if self.below(4) else "let"
        after = scope.with_names(name)
        if word == "let":
            after = replace(after, lets=(*scope.lets, name))
        return f"{word} {target}~=~await~{call}§", after


def programs(count: int, *, seed: int) -> Iterator[str]:
    """Generate `count` programs, the same for the same seed."""
    draw = random.Random(seed)  # noqa: S311 - programs for tests
    for number in range(count):
        writer = Programs(draw.randbytes(draw.randint(100, 500)))
        lets = tuple(f"@{name}@" for name in range(3))
        head = "let @0@~=~1,~@1@,~@2@~=~'s'§~const @16@~=~{~q:~0~}§"
        scope = Scope(names=("@10@", *lets), lets=lets)
        body = writer.lines(scope, ending=True, least=3)
        layout, semicolons = ((" ", True), ("\n", True), ("\n", False))[number % 3]
        yield render(f"{head}~{_FIRST}~{body}", layout=layout, semicolons=semicolons)


def understood(code: str) -> Analysis | Rejection:
    """Analyse a program that may call every tool and capability."""
    return analyze(code, tools=TOOLS, policy=Policy(), capabilities=LIBRARY)
