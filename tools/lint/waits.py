"""Reject tests that depend on the speed of the machine: asserts on elapsed time, sleeps, and bounds
of waits that are literals instead of PATIENCE_S (libs/pml_local/tests/support/patience.py).

`# waits: <why>` on a line of the call or assert allows it where that time is the subject. Programs
of tests and campaigns, not tests, say `waits on purpose: <why>` near their top.
"""

import ast
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass, field
from io import StringIO
from itertools import pairwise
from pathlib import Path

SHORT_S = 30.0
"""A program that must end, but not soon, gets more time than this."""
HEAD = 10
OUTSIDE = ("tests/clients/programs/",)  # written against packages of their own
_ALLOWED = re.compile(r"# waits: \S+ \S+")
_PROGRAM = re.compile(r"waits on purpose: \S+ \S+")
_CLOCK = re.compile(r"\btime\b|monotonic|perf_counter")
_TIME = re.compile(r"^(monotonic|perf_counter|process_time|time)(_ns)?$")
_SLEEPS = frozenset({"time.sleep", "asyncio.sleep", "anyio.sleep"})
_BOUNDS = {"timeout": 0, "fail_after": 0, "move_on_after": 0, "wait_for": 1, "eventually": 1}
"""Functions of asyncio and anyio and ours, with the place of the bound among their arguments."""
_WAITING = frozenset({"run", "wait", "wait_for", "communicate", "join", "AsyncClient", "Client"})
"""Callees whose `timeout` is a bound of this wait, not a limit that somebody else applies."""
_DATA = frozenset({"replace", "model_copy"})


@dataclass
class Names:
    """Meanings of names in a module."""

    imported: dict[str, str] = field(default_factory=dict[str, str])
    """Local name → `module.name`, of what is imported from a module."""
    numbers: dict[str, float] = field(default_factory=dict[str, float])
    """Constants of the module that are numbers."""
    readings: set[str] = field(default_factory=set[str])
    """Names for readings of a clock."""
    spans: set[str] = field(default_factory=set[str])
    """Names for differences of readings, for lists of them and functions that return them."""
    clocks: set[str] = field(default_factory=set[str])
    """Names for a loop's clock."""

    def path(self, node: ast.expr) -> str:
        """Dotted name of what is called, with the module from which it was imported."""
        match node:
            case ast.Name(id=name):
                return self.imported.get(name, name)
            case ast.Attribute(value=value, attr=attr):
                return f"{self.path(value)}.{attr}"
            case ast.Call(func=func):
                return f"{self.path(func)}()"
            case _:
                return "?"

    def number(self, node: ast.expr | None) -> float | None:
        """Value of a literal, of arithmetic with one, or of a constant that is one."""
        match node:
            case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
                return float(value)
            case ast.Name(id=name):
                return self.numbers.get(name)
            case ast.BinOp(left=left, op=ast.Mult(), right=right):
                one, other = self.number(left), self.number(right)
                return None if one is None or other is None else one * other
            case _:
                return None

    def reads_clock(self, node: ast.AST) -> bool:
        """Tell whether it is a reading of a clock of the machine, or a name for one."""
        match node:
            case ast.Name(id=name):
                return name in self.readings
            case ast.Call(func=ast.Name(id=name)) if name in self.clocks:
                return True
            case ast.Call(func=func):
                return self._is_clock(func)
            case _:
                return False

    def _is_clock(self, func: ast.expr) -> bool:
        module, _, name = self.path(func).rpartition(".")
        return bool(_TIME.match(name)) and (
            module == "time" or module.rpartition(".")[2] in {"get_running_loop()", "loop"}
        )

    def is_span(self, node: ast.AST) -> bool:
        """Tell whether elapsed time is computed in it."""
        return any(self._computes_span(each) for each in ast.walk(node))

    def is_later(self, one: ast.expr, other: ast.expr) -> bool:
        """Tell whether one is a reading and the other a reading plus something."""
        match other:
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                later = self.reads_clock(left) or self.reads_clock(right)
                return later and self.reads_clock(one)
            case _:
                return False

    def _computes_span(self, node: ast.AST) -> bool:
        match node:
            case ast.BinOp(left=left, op=ast.Sub(), right=right):
                return self.reads_clock(left) or self.reads_clock(right)
            case ast.Name(id=name):
                return name in self.spans
            case _:
                return False

    def learn(self, tree: ast.AST) -> None:
        """Find the names for clocks, readings and spans in this part of the module."""
        while True:
            before = len(self.readings) + len(self.spans) + len(self.clocks)
            for node in ast.walk(tree):
                self._learn_one(node)
            if before == len(self.readings) + len(self.spans) + len(self.clocks):
                return

    def _learn_one(self, node: ast.AST) -> None:
        match node:
            case ast.Assign(targets=[target], value=value):
                self._bind(target, value)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self._bind(target, value)
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id=name), attr="append"), args=[value]
            ) if self.is_span(value):
                self.spans.add(name)
            case ast.FunctionDef() | ast.AsyncFunctionDef() if any(
                isinstance(each, ast.Return) and each.value and self.is_span(each.value)
                for each in ast.walk(node)
            ):
                self.spans.add(node.name)
            case _:
                pass

    def _bind(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            for one, other in zip(target.elts, value.elts, strict=False):
                self._bind(one, other)
        elif isinstance(target, ast.Name):
            if self.reads_clock(value):
                self.readings.add(target.id)
            elif self.is_span(value):
                self.spans.add(target.id)
            elif isinstance(value, ast.Attribute) and self._is_clock(value):
                self.clocks.add(target.id)


def names_of(tree: ast.Module) -> Names:
    """Imports and constants of a module."""
    names = Names()
    for node in tree.body:
        match node:
            case ast.ImportFrom(module=str(module), names=imported):
                for each in imported:
                    names.imported[each.asname or each.name] = f"{module}.{each.name}"
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    _constant(names, target, value)
            case _:
                pass
    return names


def _constant(names: Names, target: ast.expr, value: ast.expr) -> None:
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        for one, other in zip(target.elts, value.elts, strict=False):
            _constant(names, one, other)
    elif isinstance(target, ast.Name) and (number := names.number(value)) is not None:
        names.numbers[target.id] = number


def complaint(node: ast.AST, names: Names, awaits: bool) -> str | None:
    """Return what is wrong with one node, or None."""
    match node:
        case ast.Assert(test=test) | ast.Lambda(body=test) if _compares_span(test, names):
            return "compares elapsed time: assert the fact that it stands for"
        case ast.Call():
            return _sleep(node, names) or _bound(node, names, awaits)
        case ast.keyword(arg="json", value=body):
            return _program(body, names)
        case _:
            return None


def _compares_span(test: ast.expr, names: Names) -> bool:
    """Tell whether a span is compared, or one reading with another plus something."""
    for each in ast.walk(test):
        if isinstance(each, ast.Compare):
            sides = [each.left, *each.comparators]
            if names.is_span(each) or any(
                names.is_later(one, other) or names.is_later(other, one)
                for one, other in pairwise(sides)
            ):
                return True
    return False


def _sleep(call: ast.Call, names: Names) -> str | None:
    if names.path(call.func) not in _SLEEPS:
        return None
    idle = names.number(call.args[0]) == 0 if call.args else False
    return None if idle else "sleeps: wait for the fact with `eventually`"


def _bound(call: ast.Call, names: Names, awaits: bool) -> str | None:
    path = names.path(call.func)
    module, _, name = path.rpartition(".")
    place = _BOUNDS.get(name) if module in {"asyncio", "anyio"} or name == "eventually" else None
    if place is not None and place < len(call.args) and names.number(call.args[place]):
        return "waits for a literal time: PATIENCE_S bounds every wait"
    told = (_keyword(each.arg, name, names.number(each.value), awaits) for each in call.keywords)
    return next((each for each in told if each), None)


def _keyword(keyword: str | None, callee: str, seconds: float | None, awaits: bool) -> str | None:
    if keyword not in {"within", "timeout", "timeout_s"} or not seconds:
        return None
    waits = keyword == "within" or (keyword == "timeout" and callee in _WAITING)
    if waits and callee not in _DATA:
        return "waits for a literal time: PATIENCE_S bounds every wait"
    data = callee in _DATA or callee[:1].isupper() or not awaits
    return None if data else _limit(seconds)


def _program(body: ast.expr, names: Names) -> str | None:
    if not isinstance(body, ast.Dict):
        return None
    given = {
        key.value: names.number(value)
        for key, value in zip(body.keys, body.values, strict=True)
        if isinstance(key, ast.Constant)
    }
    return _limit(given.get("timeout")) if "code" in given else None


def _limit(seconds: float | None) -> str | None:
    if not seconds or seconds >= SHORT_S:
        return None
    return f"a limit of {seconds:g} s: a slow machine meets it, too"


def found(text: str, name: str) -> Iterator[tuple[int, str]]:
    """Yield line and complaint for a module's source; a reason that nothing needs is one, too."""
    tree = ast.parse(text, filename=name)
    comments = dict(_comments(text)) if "waits" in text else {}
    if any(_PROGRAM.search(comment) for at, comment in comments.items() if at <= HEAD):
        if Path(name).name.startswith("test_"):
            yield 1, "a test does not wait on purpose: give reasons at single lines"
        return
    allowed = {at for at, comment in comments.items() if _ALLOWED.search(comment)}
    needed: set[int] = set()
    for part in tree.body:
        names = names_of(tree)
        if _CLOCK.search(text):
            names.learn(part)
        awaiting = _awaiting(part)
        for node in ast.walk(part):
            if told := complaint(node, names, node in awaiting):
                own = allowed.intersection(_lines(node))
                needed |= own
                if not own:
                    yield _lines(node)[0], told
    yield from ((at, "a reason for waiting that nothing needs") for at in sorted(allowed - needed))


def _comments(text: str) -> Iterator[tuple[int, str]]:
    for token in tokenize.generate_tokens(StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def _awaiting(part: ast.AST) -> set[ast.AST]:
    """Nodes of functions that can wait: elsewhere a `timeout` is data."""
    functions = (each for each in ast.walk(part) if isinstance(each, ast.AsyncFunctionDef))
    return {node for function in functions for node in ast.walk(function)}


def _lines(node: ast.AST) -> range:
    match node:
        case ast.stmt() | ast.expr() | ast.keyword():
            return range(node.lineno, (node.end_lineno or node.lineno) + 1)
        case _:
            return range(1, 2)


def main(folders: list[str]) -> int:
    """Check every tracked or untracked file of tests in these folders, by default in all."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", *folders],
        check=True,
        capture_output=True,
        text=True,
    )
    names = [
        name
        for name in listed.stdout.splitlines()
        if name.endswith(".py") and "tests" in Path(name).parts and not name.startswith(OUTSIDE)
    ]
    complaints = [
        f"{name}:{line}: {told}"
        for name in names
        if Path(name).exists()
        for line, told in found(Path(name).read_text(encoding="utf-8"), name)
    ]
    for each in complaints:
        print(each, file=sys.stderr)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
