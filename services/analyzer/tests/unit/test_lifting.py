"""Literals that become parameters."""

import pytest

from pml_analysis.analysis import Rejection
from pml_analysis.lifted import Lifted, lifted
from pml_analysis.text.limits import Limits
from pml_common.contracts.decision import Policy
from pml_common.contracts.parameters import CERTAIN
from pml_common.contracts.structure import (
    Argument,
    ObjectArgument,
    ParameterArgument,
    ReferenceArgument,
)
from services.analyzer.tests.support.programs import TOOLS, analysed, task


def lift(code: str) -> Lifted:
    """Lift the literals of a program."""
    found = lifted(code, tools=TOOLS, policy=Policy())
    assert isinstance(found, Lifted), found
    return found


REWRITTEN: dict[str, tuple[str, str]] = {
    "a text": ("mcp.fs.read({ path: 'a' });", "mcp.fs.read({ path: args.path ?? 'a' });"),
    "what there is of values": (
        "mcp.fs.read({ a: -1, b: true, c: `t`, d: ['x', [2]], e: 'a' + 'b', f: false });",
        "mcp.fs.read({ a: args.a ?? -1, b: args.b ?? true, c: args.c ?? `t`,"
        " d: args.d ?? ['x', [2]], e: args.e ?? 'a' + 'b', f: args.f ?? false });",
    ),
    "nothing that is no value of JSON": (
        "mcp.fs.read({ a: null, b: undefined, c: 10n, d: '\\ud800', e: [null], f: /x/, g: !1 });",
        "mcp.fs.read({ a: null, b: undefined, c: 10n, d: '\\ud800', e: [null], f: /x/, g: !1 });",
    ),
    "nothing that chooses": (
        "mcp.fs.read({ path: ('a' && 'a'), limit: 1 ? 2 : 2 });",
        "mcp.fs.read({ path: ('a' && 'a'), limit: 1 ? 2 : 2 });",
    ),
    "nothing that the run computes": (
        "const r = await mcp.fs.list({}); mcp.fs.read({ a: r, b: `${r}`, c: [r], d: [args.x] });",
        "const r = await mcp.fs.list({}); mcp.fs.read({ a: r, b: `${r}`, c: [r], d: [args.x] });",
    ),
    "objects field by field": (
        "mcp.http.post({ headers: { auth: { token: 't' } } });",
        "mcp.http.post({ headers: { auth: { token: args.token ?? 't' } } });",
    ),
    "keys that are no names": (
        "mcp.http.post({ 'content-type': 'x', constructor: 'y', größe: 1 });",
        "mcp.http.post({ 'content-type': args[\"content-type\"] ?? 'x',"
        " constructor: args.constructor_2 ?? 'y', größe: args[\"gr\\u00f6\\u00dfe\"] ?? 1 });",
    ),
    "only values that have a key": (
        "mcp.fs.read({ ...{ path: 'a' }, ...'b', [args.k]: 'c' }); mcp.fs.list('d');",
        "mcp.fs.read({ ...{ path: args.path ?? 'a' }, ...'b', [args.k]: 'c' }); mcp.fs.list('d');",
    ),
    "the same twice is one": (
        "mcp.fs.read({ path: 'a' }); mcp.fs.stat({ path: 'a' });",
        "mcp.fs.read({ path: args.path ?? 'a' }); mcp.fs.stat({ path: args.path ?? 'a' });",
    ),
    "the same text under another key is another": (
        "mcp.http.post({ url: 'a', body: 'a', headers: { url: 'a' } });",
        "mcp.http.post({ url: args.url ?? 'a', body: args.body ?? 'a',"
        " headers: { url: args.url_2 ?? 'a' } });",
    ),
    "another value is numbered": (
        "mcp.fs.read({ path: 'a' }); mcp.fs.read({ path: 'b' }); mcp.fs.read({ path: 'c' });",
        "mcp.fs.read({ path: args.path ?? 'a' }); mcp.fs.read({ path: args.path_2 ?? 'b' });"
        " mcp.fs.read({ path: args.path_3 ?? 'c' });",
    ),
    "1 is not true": (
        "mcp.fs.read({ a: 1 }); mcp.fs.read({ a: true });",
        "mcp.fs.read({ a: args.a ?? 1 }); mcp.fs.read({ a: args.a_2 ?? true });",
    ),
    "names of parameters are taken": (
        "mcp.fs.read({ path, limit: 1 }); mcp.fs.read({ path: 'a', limit: args.limit });",
        "mcp.fs.read({ path, limit: args.limit_2 ?? 1 });"
        " mcp.fs.read({ path: args.path_2 ?? 'a', limit: args.limit });",
    ),
    "constants where they are declared": (
        "const path = 'a' as const, p = path; mcp.fs.read({ path: p }); mcp.fs.stat({ path });",
        "const path = args.path ?? 'a' as const, p = path; mcp.fs.read({ path: p });"
        " mcp.fs.stat({ path });",
    ),
    "constants of an object": (
        "const options = { path: 'a' }; mcp.fs.read(options); mcp.fs.stat(options);",
        "const options = { path: args.path ?? 'a' }; mcp.fs.read(options); mcp.fs.stat(options);",
    ),
    "not what may change": (
        "let path = 'a'; mcp.fs.read({ path }); const { p } = { p: 'b' }; mcp.fs.read({ path: p });"
        " try {} catch (e) { mcp.fs.read({ path: e }); }",
        "let path = 'a'; mcp.fs.read({ path }); const { p } = { p: 'b' }; mcp.fs.read({ path: p });"
        " try {} catch (e) { mcp.fs.read({ path: e }); }",
    ),
    "a constant that says which tool is called stays": (
        "const s = 'fs'; mcp[s].read({ path: s, limit: 3 });",
        "const s = 'fs'; mcp[s].read({ path: s, limit: args.limit ?? 3 });",
    ),
    "where args are something else": (
        "const f = (args) => mcp.fs.read({ path: 'a' }); f(); return args.path;",
        "const f = (args) => mcp.fs.read({ path: context.path_2 ?? 'a' }); f(); return args.path;",
    ),
    "where args and context are something else": (
        "const f = (args, context) => mcp.fs.read({ path: 'a' }); f();",
        "const f = (args, context) => mcp.fs.read({ path: params.path ?? 'a' }); f();",
    ),
    "where nearly all names are something else": (
        "const f = (args, context) => mcp.fs.read({ path: 'a' }); f(params);",
        "const f = (args, context) => mcp.fs.read({ path: input.path ?? 'a' }); f(params);",
    ),
    "where a spoken name is used like that": (
        "const f = (args, context) => mcp.fs.read({ path: 'a' }); f(params.x);",
        "const f = (args, context) => mcp.fs.read({ path: params.path ?? 'a' }); f(params.x);",
    ),
    "where all names are something else": (
        "const f = (args, context, params, input) => mcp.fs.read({ path: 'a' }); f();",
        "const f = (args, context, params, input) => mcp.fs.read({ path: 'a' }); f();",
    ),
    "arguments that are opened": (
        "const { a, ...rest } = args; const all = args; const main = ({ b }) => b;"
        " mcp.fs.read({ path: 'a', limit: [a, rest.c, all.d, main((args))] });",
        "const { a, ...rest } = args; const all = args; const main = ({ b }) => b;"
        " mcp.fs.read({ path: args.path ?? 'a', limit: [a, rest.c, all.d, main((args))] });",
    ),
}

UNCHANGED = {
    "handed on": "mcp.fs.read({ ...args, path: 'a' });",
    "printed": "mcp.fs.read({ path: 'a' }); return JSON.stringify(args);",
    "the rest of them": "const { a, ...rest } = args; mcp.fs.read({ path: 'a', ...rest });",
    "asked for by the run": "mcp.fs.read({ path: 'a', limit: args[args.k] });",
    "collected": "const f = (...all) => all; f(args); mcp.fs.read({ path: 'a' });",
}


@pytest.mark.parametrize(("code", "expected"), REWRITTEN.values(), ids=REWRITTEN)
def test_literals_are_what_they_were_unless_something_is_handed_in(
    code: str, expected: str
) -> None:
    assert lift(code).code == expected


@pytest.mark.parametrize("code", UNCHANGED.values(), ids=UNCHANGED)
def test_where_all_arguments_are_used_at_once_nothing_is_lifted(code: str) -> None:
    found = lift(code)
    assert found == Lifted(code, analysed(code).parameters_schema, {})


def test_the_schema_has_the_new_parameters_among_the_others() -> None:
    found = lift("const r = await mcp.fs.read({ path, limit: 10 });\nreturn r.content;")
    assert found.parameters_schema == {
        "type": "object",
        "properties": {
            "path": {"type": "string"},
            "limit": {"type": "number", "default": 10},
        },
        "required": ["path"],
        CERTAIN: {"required": ["path"]},
    }


def test_a_parameter_knows_its_calls_and_what_it_is_otherwise() -> None:
    found = lift(
        "const read = (p) => mcp.fs.read({ path: p, limit: 3 });"
        " await read('a'); await read('b'); await mcp.fs.stat({ path: 'c', limit: 3 });"
    )
    ((name, limit), (other, path)) = found.parameters.items()
    assert (name, limit.node_ids, limit.default) == ("limit", ("n1", "n2", "n3"), 3)
    assert (other, path.node_ids, path.default) == ("path", ("n3",), "c")


@pytest.mark.parametrize("code", [code for code, _ in REWRITTEN.values()], ids=REWRITTEN)
def test_every_call_of_a_parameter_takes_it(code: str) -> None:
    found = lift(code)
    after = analysed(found.code)
    properties = after.parameters_schema["properties"]
    assert isinstance(properties, dict)
    for name, parameter in found.parameters.items():
        said = properties[name]
        assert isinstance(said, dict)
        assert said["default"] == parameter.default
        for node_id in parameter.node_ids:
            assert name in _parameters(ObjectArgument(fields=task(after, node_id).arguments))


def _parameters(argument: Argument) -> list[str]:
    """Return the parameters that an argument is, certainly or perhaps."""
    match argument:
        case ObjectArgument(fields=fields):
            return [name for field in fields.values() for name in _parameters(field)]
        case ParameterArgument(parameter_name=name):
            return [name]
        case ReferenceArgument(expression=expression):
            return [expression.removeprefix("args.").partition(" ??")[0]]
        case _:
            return []


def test_lifting_twice_changes_nothing_more() -> None:
    for code, _ in REWRITTEN.values():
        once = lift(code)
        assert lift(once.code).code == once.code


def test_a_program_that_would_get_too_long_stays_as_it_is() -> None:
    code = "mcp.fs.read({ path: 'a' });"
    limits = Limits(source_bytes=len(code))
    found = lifted(code, tools=TOOLS, policy=Policy(), limits=limits)
    assert isinstance(found, Lifted)
    assert (found.code, found.parameters) == (code, {})


def test_a_program_that_cannot_run_is_not_lifted() -> None:
    assert isinstance(lifted("mcp.no.such({ a: 1 });", tools=TOOLS, policy=Policy()), Rejection)
