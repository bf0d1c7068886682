"""Objects of a program that change invisibly are not reported as they are written."""

import pytest

from pml_common.contracts.structure import LiteralArgument, TaskNode
from services.analyzer.tests.support.programs import analysed


@pytest.mark.parametrize(
    "code",
    [
        "const o = { path: 'a' }; o[args.k]().x = 1; await mcp.fs.read({ ...o });",
        "const o = { path: 'a', m() { this.path = 'b'; } }; (o.m)(); await mcp.fs.read(o);",
        "const o = { path: 'a', m() { this.path = 'b'; } }; o.m!(); await mcp.fs.read(o);",
        "const o = { path: 'a', m() { this.path = 'b'; } }; (o.m as any)(); await mcp.fs.read(o);",
        "const o = { path: 'a', m() { this.path = 'b'; } }; (o.m)`x`; await mcp.fs.read(o);",
        "const f = async (o) => { (o.m)(); await mcp.fs.read(o); };"
        " await f({ path: 'a', m() { this.path = 'b'; } });",
    ],
)
def test_a_method_that_is_called_through_wrappers_may_change_its_object(code: str) -> None:
    (call,) = _tasks(code)
    assert not isinstance(call.arguments.get("path"), LiteralArgument)


P = "const P = [Object.getPrototypeOf][0]({}); "
READ = " args.hasOwnProperty('x'); `${args}`; o.x; await mcp.fs.read({ ...o, limit: args.n });"


@pytest.mark.parametrize(
    "code",
    [
        "P.hasOwnProperty = function () { this.path = 'b'; };",
        "const f = function () { this.path = 'b'; }; P.toString = f;",
        "Object.defineProperty(P, 'x', { get() { this.path = 'b'; } });",
        "Object.defineProperties(P, { x: { get() { this.path = 'b'; } } });",
        "Object.assign(P, { toString() { this.path = 'b'; } });",
        "Object.assign(...[P, { toString() { this.path = 'b'; } }]);",
        "const { assign } = Object; assign(P, { toString() { this.path = 'b'; } });",
        "const d = Object.defineProperty; d(P, 'x', { get() { this.path = 'b'; } });",
        "function put(p) { p.toString = () => { args.n = 1; }; } put(P);",
        "[P].forEach((p) => { p.toString = () => { args.n = 1; }; });",
    ],
)
def test_nothing_is_known_once_functions_may_run_where_values_are_read(code: str) -> None:
    (call,) = _tasks(f"{P} const o = {{ path: 'a' }}; {code} {READ}")
    assert [argument.type for argument in call.arguments.values()] == ["reference"] * 2


@pytest.mark.parametrize(
    "code",
    [
        "const own = {}; own.f = () => 1;",
        "const own = []; own[0] = function () {};",
        "class A {} A.f = () => 1;",
        "const r = await mcp.fs.stat({}); r.f = () => 1;",
        "args.q = () => 1;",
        "Object.assign({}, { a: 1 });",
        "const x = {}; Object.defineProperty(x, 'a', { value: 1 });",
        "for (const x of args.l) x.y = 1;",
    ],
)
def test_functions_in_ones_own_objects_change_no_others(code: str) -> None:
    *_, call = _tasks(f"const o = {{ path: 'a' }}; {code} o.x; await mcp.fs.read({{ ...o }});")
    assert call.arguments == {"path": LiteralArgument(value="a")}


def _tasks(code: str) -> list[TaskNode]:
    return [node for node in analysed(code).structure.nodes if isinstance(node, TaskNode)]
