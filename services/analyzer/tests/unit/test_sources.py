"""Arguments that certainly are an unchanged part of an earlier result, or of the caller's."""

import pytest
from pydantic import JsonValue

from pml_common.contracts.structure import (
    ReferenceArgument,
    TaskNode,
)
from services.analyzer.tests.support.programs import analysed

R = "const r = await mcp.fs.list({ path: 'a' }); "

PURE: dict[str, tuple[str, str, list[JsonValue]]] = {
    "a whole result": (f"{R} <<r>>", "n1", []),
    "a member": (f"{R} <<r.content>>", "n1", ["content"]),
    "a chain": (f"{R} <<r.files[0].name>>", "n1", ["files", 0, "name"]),
    "keys as texts": (f"{R} <<r['files']['0'].name>>", "n1", ["files", 0, "name"]),
    "keys by name": (f"{R} const k = 'files'; <<r[k]>>", "n1", ["files"]),
    "odd keys": (f"{R} <<r['01']['99999999999']['']>>", "n1", ["01", "99999999999", ""]),
    "an optional chain": (f"{R} <<r?.files?.[0]>>", "n1", ["files", 0]),
    "casts": (f"{R} <<(r as any).files![0]>>", "n1", ["files", 0]),
    "an alias": (f"{R} const s = r, t = s.files; <<t[1]>>", "n1", ["files", 1]),
    "destructured": ("const { a: [, b] } = await mcp.fs.list({}); <<b>>", "n1", ["a", 1]),
    "the rest": (f"{R} const {{ a, ...s }} = r; <<s.b>>", "n1", ["b"]),
    "awaited on the spot": ("<<(await mcp.fs.stat({})).a>>", "n2", ["a"]),
    "awaited later": ("const p = mcp.fs.stat({}); <<(await p).a>>", "n1", ["a"]),
    "awaited twice": (f"{R} <<await r.a>>", "n1", ["a"]),
    "by name": ("const r = await mcp.call('fs:stat', {}); <<r.a>>", "n1", ["a"]),
    "then": ("mcp.fs.stat({}).then((r) => <<r.a>>)", "n1", ["a"]),
    "then, opened": ("mcp.fs.stat({}).then(({ a }) => <<a>>)", "n1", ["a"]),
    "then, by name": ("const f = (r) => { <<r.a>> }; mcp.fs.stat({}).then(f)", "n1", ["a"]),
    "side by side": (
        "const [a, b] = await Promise.all([mcp.fs.list({}), mcp.fs.stat({})]); <<b.x>>",
        "n2",
        ["x"],
    ),
    "side by side, then": (
        "Promise.all([mcp.fs.list({}), mcp.fs.stat({})]).then(([a, b]) => <<b.x>>)",
        "n2",
        ["x"],
    ),
    "of a local function": (
        "const get = async (p) => { const r = await mcp.fs.stat({ path: p }); return r.a };"
        " const x = await get('1'), y = await get('2'); <<y.b>>",
        "n2",
        ["a", "b"],
    ),
    "of a function that does not wait": (
        "const get = () => mcp.fs.stat({}); const r = await get(); <<r.a>>",
        "n1",
        ["a"],
    ),
    "handed to a function": (f"{R} const f = (x) => {{ <<x.b>> }}; f(r.a)", "n1", ["a", "b"]),
    "handed to one that opens it": (
        f"{R} const f = ({{ b }}) => {{ <<b>> }}; f(r.a)",
        "n1",
        ["a", "b"],
    ),
    "an element in a loop": (f"{R} for (const f of r.files) <<f.x>>", "n1", ["files", None, "x"]),
    "an element, opened": (f"{R} for (const {{ x }} of r.files) <<x>>", "n1", ["files", None, "x"]),
    "an element, for await": (f"{R} for await (const f of r.files) <<f>>", "n1", ["files", None]),
    "an element or none": (f"{R} for (const f of r.files ?? []) <<f>>", "n1", ["files", None]),
    "an element in a callback": (f"{R} r.files.map((f) => <<f.x>>)", "n1", ["files", None, "x"]),
    "an element, by name": (
        f"{R} const g = (f) => {{ <<f.x>> }}; r.files.forEach(g)",
        "n1",
        ["files", None, "x"],
    ),
    "an element, by a cast name": (
        f"{R} const g = (f) => {{ <<f.x>> }}; r.files.forEach((g as any))",
        "n1",
        ["files", None, "x"],
    ),
    "of a function with others in it": (
        "const f = async () => { const g = () => { return 1; }; return await mcp.fs.stat({}); };"
        " const r = await f(); <<r.a>>",
        "n1",
        ["a"],
    ),
    "an element of some": (
        f"{R} for (const f of r.files.filter((x) => x.ok).slice(0, 2)) <<f>>",
        "n1",
        ["files", None],
    ),
    "an element of mapped calls": (
        f"{R} const l = await Promise.all(r.files.map(async (path) => mcp.fs.read({{ path }})));"
        " for (const f of l) <<f.content>>",
        "n2",
        ["content"],
    ),
    "of mapped calls of written ones": (
        "const l = await Promise.all(['a'].map((path) => mcp.fs.read({ path })));"
        " l.forEach((f) => <<f.content>>)",
        "n1",
        ["content"],
    ),
    "another part is changed": (f"{R} r.a.sort(); <<r.b>>", "n1", ["b"]),
    "a copy is changed": (f"{R} const s = {{ ...r }}; s.a = 1; <<r.a>>", "n1", ["a"]),
}


@pytest.mark.parametrize(("code", "node_id", "path"), PURE.values(), ids=PURE)
def test_an_unchanged_part_of_a_result_has_its_path(
    code: str, node_id: str, path: list[JsonValue]
) -> None:
    value = _used(code)
    assert isinstance(value, ReferenceArgument)
    assert (value.node_id, value.path) == (node_id, tuple(path))


COMPUTED = {
    "an operator": f"{R} <<r.a + ''>>",
    "a template": f"{R} <<`${{r.a}}`>>",
    "a call": f"{R} <<r.a.trim()>>",
    "parsed": f"{R} <<JSON.parse(r.a).x>>",
    "a choice": f"{R} <<args.x ? r.a : r.b>>",
    "one of two calls": "const r = args.x ? await mcp.fs.list({}) : await mcp.fs.stat({}); <<r.a>>",
    "perhaps absent": "const r = args.x ? await mcp.fs.list({}) : null; <<r.a>>",
    "a default": f"{R} <<r.a ?? 'x'>>",
    "a default in a pattern": f"{R} const {{ a = 1 }} = r; <<a>>",
    "two defaults": f"{R} const {{ a: {{ b = 1 }} = {{}} }} = r; <<b>>",
    "a default of a parameter": f"{R} const f = (x = 1) => {{ <<x>> }}; f(r.a)",
    "an unknown index": f"{R} <<r.files[args.i]>>",
    "an unknown key": f"{R} const {{ [args.k]: x }} = r; <<x>>",
    "a negative index": f"{R} <<r.files[-1]>>",
    "a length": f"{R} <<r.files.length>>",
    "what is inherited": f"{R} <<r.toString>>",
    "a promise": "const p = mcp.fs.list({}); <<p>>",
    "a part of a promise": "const p = mcp.fs.list({}); <<p.a>>",
    "an unawaited function": "const f = async () => await mcp.fs.list({}); const r = f(); <<r.a>>",
    "a function that may return nothing": (
        "const f = async () => { if (args.x) return await mcp.fs.list({}); };"
        " const r = await f(); <<r.a>>"
    ),
    "a function of two results": (
        "const f = async () => { if (args.x) return 1; return await mcp.fs.list({}); };"
        " const r = await f(); <<r.a>>"
    ),
    "what fails otherwise": "const r = await mcp.fs.list({}).catch(() => 1); <<r.a>>",
    "assigned twice": f"{R} let s = r; s = {{}}; <<s.a>>",
    "assigned later": "let s; s = await mcp.fs.list({}); <<s.a>>",
    "of a capability by name": "const r = await mcp.call(args.c, {}); <<r.a>>",
    "the rest as a whole": f"{R} const {{ a, ...s }} = r; <<s>>",
    "what the rest lacks": f"{R} const {{ a, ...s }} = r; <<s.a>>",
    "the rest beside an unknown key": f"{R} const {{ [args.k]: a, ...s }} = r; <<s.b>>",
    "the rest of a list": f"{R} const [a, ...s] = r.l; <<s[0]>>",
    "of the rest of a list": f"{R} const [a, ...[b]] = r.l; <<b>>",
    "a handed rest": f"{R} const f = ([a, ...s]) => {{ <<s>> }}; f(r.l)",
    "by a reducer": f"{R} r.l.reduce((a, x) => <<a>>)",
    "by a reducer with a name": f"{R} const f = (a) => {{ <<a>> }}; r.l.reduce(f)",
    "the index of an element": f"{R} r.l.forEach((x, i) => <<i>>)",
    "a callback with a name": f"{R} r.l.forEach(function f(x) {{ <<x>>; f(1) }})",
    "the first of some": f"{R} <<r.l.filter((x) => x.ok)[0]>>",
    "a hoisted loop name": f"{R} for (var f of r.l) {{ }} <<f>>",
    "keys": f"{R} for (const k in r) <<k>>",
    "of a race": "const r = await Promise.race([mcp.fs.list({})]); <<r.a>>",
    "of unawaited ones": "const l = Promise.all([mcp.fs.list({})]); <<l[0]>>",
    "of own Promise": (
        "const Promise = { all: (l) => l }; const [a] = await Promise.all([mcp.fs.list({})]); <<a>>"
    ),
    "of mapped ones, by index": (
        "const l = await Promise.all(args.l.map((path) => mcp.fs.read({ path }))); <<l[0]>>"
    ),
    "mapped by who knows what": (
        "const l = await Promise.all(args.x().map((path) => mcp.fs.read({ path })));"
        " for (const f of l) <<f>>"
    ),
    "mapped by a name": (
        "const g = (path) => mcp.fs.read({ path });"
        " const l = await Promise.all(args.l.map(g)); for (const f of l) <<f>>"
    ),
    "a name that refers to itself": "const l = await Promise.all(l.map((x) => mcp.fs.read(x)));"
    " for (const f of l) <<f>>",
    "tagged": f"{R} const f = (s, x = 1) => {{ <<x>> }}; f`${{r.a}}`",
    "the language's own": "<<Math>>",
    "a handed unknown key": f"{R} const f = ({{ [args.k]: v }}) => {{ <<v>> }}; f(r)",
    "a default for the whole": f"{R} const {{ a: {{ b }} = {{}} }} = r; <<b>>",
    "a list of itself": "const l = await Promise.all([l[0]]); <<l[0].x>>",
    "mapped too often": (
        "const l0 = args.l; "
        + " ".join(
            f"const l{at} = await Promise.all(l{at - 1}.map(async () => mcp.fs.read({{}})));"
            for at in range(1, 30)
        )
        + " for (const f of l29) <<f>>"
    ),
    "given nothing": "const f = (x) => { <<x>> }; f()",
}


@pytest.mark.parametrize("code", COMPUTED.values(), ids=COMPUTED)
def test_whatever_else_is_computed(code: str) -> None:
    _is_computed(code)


CHANGED = {
    "sorted": f"{R} r.a.sort(); <<r.a[0]>>",
    "written": f"{R} r.a = 1; <<r.a>>",
    "written inside": f"{R} r.a.b = 1; <<r.a>>",
    "deleted": f"{R} delete r.a; <<r.a>>",
    "destructured": f"{R} [r.a, r.b] = [1, 2]; <<r.a>>",
    "in a loop's head": f"{R} for (r.a of [1]); <<r.a>>",
    "through wrappers": f"{R} (r.a.push)(1); <<r.a[0]>>",
    "by an alias": f"{R} const s = r.a; s.push(1); <<r.a>>",
    "by one of two names": f"{R} let s = r; s = {{}}; s.a = 1; <<r.a>>",
    "by a choice": f"{R} (args.x ? r : {{}})['a'] = 1; <<r.a>>",
    "by a part": f"{R} const {{ files: [f] }} = r; f.x = 1; <<r.files[0].x>>",
    "by an element": f"{R} for (const f of r.l) f.x = 1; <<r.l[0].x>>",
    "by a callback": f"{R} r.l.forEach((f) => {{ f.x = 1; }}); <<r.l[0].x>>",
    "by the list of a callback": f"{R} r.l.forEach((f, i, l) => {{ l[i] = 1; }}); <<r.l[0]>>",
    "by a function": f"{R} function f(x) {{ x.a = 1; }} f(r); <<r.a>>",
    "by Object.assign": f"{R} Object.assign(r, {{ a: 1 }}); <<r.a>>",
    "by call": f"{R} const f = [].push; f.call(r.l, 1); <<r.l[0]>>",
    "by a Proxy": f"{R} const w = new Proxy(r, {{}}); w.a = 1; <<r.a>>",
    "in a member": f"{R} const o = {{}}; o.k = r; o.k.a = 1; <<r.a>>",
    "in a list": f"{R} const l = [r]; l[0].a = 1; <<r.a>>",
    "pushed": f"{R} const l = []; l.push(r.a); l[0].push(1); <<r.a[0]>>",
    "awaited on the spot": "const p = mcp.fs.list({}); (await p).a = 1; <<(await p).a>>",
    "in then": "const p = mcp.fs.list({}); p.then((r) => { r.a = 1; }); <<(await p).a>>",
    "in what then gives": (
        "const p = mcp.fs.list({}); const q = await p.then((r) => r); q.a = 1; <<(await p).a>>"
    ),
    "of a function": "const g = () => mcp.fs.list({}); const r = await g(); r.a = 1; <<r.a>>",
    "side by side": "const l = await Promise.all([mcp.fs.list({})]); l[0].a = 1; <<l[0].a>>",
    "side by side, opened": (
        "const [a] = await Promise.all([mcp.fs.list({})]); const l = [a]; l[0].x = 1; <<a.x>>"
    ),
    "a default": f"{R} r.a ??= 1; <<r.a>>",
    "a method of its own": f"{R} r.l.map = (f) => f(1); r.l.map((x) => <<x>>)",
    "an iterator of its own": (
        f"{R} r.l[Symbol.iterator] = function* () {{ yield 1; }}; for (const x of r.l) <<x>>"
    ),
    "another all": (
        "Promise.all = async () => [1]; const [a] = await Promise.all([mcp.fs.list({})]); <<a>>"
    ),
}


@pytest.mark.parametrize("code", CHANGED.values(), ids=CHANGED)
def test_what_may_be_changed_is_computed(code: str) -> None:
    _is_computed(code)


def _used(code: str) -> object:
    """Return the argument of the call in `<<…>>`."""
    text = code.replace("<<", "mcp.json.parse({ json: ").replace(">>", " })")
    (use,) = [task for task in _tasks(text) if task.tool == "json:parse"]
    return use.arguments["json"]


def _is_computed(code: str) -> None:
    value = _used(code)
    assert isinstance(value, ReferenceArgument), value
    assert value.path is None


def _tasks(code: str) -> list[TaskNode]:
    return [node for node in analysed(code).structure.nodes if isinstance(node, TaskNode)]
