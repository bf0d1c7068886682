"""Texts that are slow to analyse for their length: CPU milliseconds per KiB of one repeated
snippet, at three lengths. A cost that grows with the length is worse than linear.

`uv run python bench/slow_texts.py [KiB...]`
"""

import sys
from collections.abc import Callable, Iterator
from time import process_time
from typing import Final

from pml_analysis.analysis import analyze
from pml_common.contracts.decision import Policy
from pml_common.contracts.tool import ToolDefinition

TOOLS: Final = (ToolDefinition(server="fs", name="read"),)
DEEPEST: Final = 400
SHOWN: Final = 20

REPEATED: Final = (
    *("'", '"', "`", "'a", "'\"`", "\\", "/", "/*", "//x\n", "(", ")", "[]", "({})", "<", "a<"),
    *("`${", "`${a}`;", "let a;", "a=1;", "a;", ";", ",", "@a ", "#", "a?b:", "()=>", "a=", "!"),
    *("-", "await ", "yield ", "\n", "\r", "\u200b", "1..", "1", "\\u0061", "'a';", "'a'+", "<a>"),
    *("/a/;", "import a;", "try{a()}catch{}", "if(a)b();else ", "a&&b||", "a.", "a?.", "async "),
    *("mcp.fs.read({});", "await mcp.fs.read({});", "mcp[a].b();", "case 1:", "x as y as "),
    *("a ? (b) : c", "a<b>", "\U0001f600"),
)
"""Each text repeats one of these."""

NUMBERED: Final[dict[str, Callable[[int], str]]] = {
    "declarations": lambda n: f"let v{n}=v{n - 1};",
    "calls": lambda n: f"const r{n}=await mcp.fs.read({{path:r{n - 1}}});",
    "functions": lambda n: f"function f{n}(){{f{n - 1}();f{n - 1}();}}",
    "closures": lambda n: f"const f{n}=(x)=>f{n - 1}(x);",
    "sums": lambda n: f"const c{n}=c{n - 1}+c{n - 1};",
    "spreads": lambda n: f"const o{n}={{...o{n - 1},a:{n}}};",
    "patterns": lambda n: f"const {{a:x{n}}}=x{n - 1};",
    "members": lambda n: f"o.a{n}=o.a{n - 1};",
    "prototypes": lambda n: f"a{n}.prototype.x=1;",
    "labels": lambda n: f"l{n}:",
    "misspelt": lambda n: f"mcp.fs.raed{n}({{}});",
    "free": lambda n: f"use{n}.x;",
    "classes": lambda n: f"class A{n}{{m(){{}}}}",
}
"""In these each repetition has a number."""

NESTED: Final = (
    ("(", ")"),
    ("[", "]"),
    ("{a:", "}"),
    ("()=>{", "}"),
    ("if(a){", "}"),
    ("`${", "}`"),
)
"""Nested as deeply as allowed, then closed, repeatedly."""


def texts(size: int) -> Iterator[tuple[str, str]]:
    """Each text with its name, of about this many bytes."""
    for unit in REPEATED:
        yield repr(unit), unit * (size // len(unit.encode()))
    for name, made in NUMBERED.items():
        yield name, "\n".join(made(number) for number in range(size // len(made(size // 10))))
    for opening, closing in NESTED:
        one = f"x={opening * DEEPEST}1{closing * DEEPEST};"
        yield f"{opening} {closing}", one * max(1, size // len(one))


def cost(text: str) -> float:
    """CPU milliseconds of one analysis."""
    began = process_time()
    analyze(text, tools=TOOLS, policy=Policy())
    return (process_time() - began) * 1e3


def main(sizes: list[int]) -> None:
    """Print the slowest at the first length."""
    analyze("return 1;", tools=TOOLS, policy=Policy())
    rows: dict[str, list[float]] = {}
    for size in sizes:
        for name, text in texts(size * 1024):
            kib = max(1, len(text.encode())) / 1024
            rows.setdefault(name, []).append(cost(text) / kib)
    print(f"CPU milliseconds per KiB at {', '.join(map(str, sizes))} KiB")
    for name, costs in sorted(rows.items(), key=lambda row: -row[1][0])[:SHOWN]:
        print(f"{name:>28} {' '.join(f'{each:8.2f}' for each in costs)}")


if __name__ == "__main__":
    main([int(each) for each in sys.argv[1:]] or [4, 32, 128])
