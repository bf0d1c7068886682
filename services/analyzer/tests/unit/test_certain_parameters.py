"""Parameters of which more is certain than what their uses suggest."""

import pytest
from pydantic import JsonValue

from pml_analysis.analysis import Analysis, analyze
from pml_common.contracts.decision import Policy
from pml_common.contracts.parameters import CERTAIN
from pml_common.contracts.tool import JsonObject, ToolDefinition
from services.analyzer.tests.support.programs import analysed

TEXT: JsonObject = {"type": "string"}
TEXT_OR_NULL: JsonObject = {"type": ["string", "null"]}


def certain(code: str) -> object:
    """Return what the analysis of a program is certain of."""
    return analysed(code).parameters_schema.get(CERTAIN)


@pytest.mark.parametrize(
    ("code", "properties", "required"),
    [
        ("const path: string = args.path; return path;", {"path": TEXT}, ["path"]),
        ("return (args.path as string);", {"path": TEXT_OR_NULL}, []),
        (
            "const { path, limit = 5 }: { path: string; limit?: number } = args;"
            " return [path, limit];",
            {"path": TEXT, "limit": {"type": ["number", "null"]}},
            ["path"],
        ),
        (
            "const given = args as {\n  // where\n  to: { name: string },\n  'tags'?: string[];\n"
            "  many: Record<string, string>\n};\nreturn [given.to.name, given.tags];",
            {
                "to": {"type": "object", "properties": {"name": TEXT}, "required": ["name"]},
                "tags": {"type": ["array", "null"], "items": TEXT},
            },
            ["to"],
        ),
        (
            "async function main({ path }: { path: string }) { return path; }\n"
            "return await main(args);",
            {"path": TEXT},
            ["path"],
        ),
        (
            "function read(path?: string) { return path; }\nreturn read(args.path);",
            {"path": TEXT_OR_NULL},
            [],
        ),
        ("return args.path.trim();", {"path": TEXT}, ["path"]),
        ("return args.user.name;", None, ["user"]),
        ("if (!args.path || args.at == null) throw 1; return 1;", None, ["path", "at"]),
        (
            "if (!Array.isArray(args.rows)) throw 1; args.n ||= args.m.x; return args.a.b?.c.d;",
            {},
            ["rows", "a"],
        ),
        (
            "const g = args as { f: { a: () => void; b: string; c: { d: string }[] } };"
            " return g.q ? args.q.r : class { x = args.y.z };",
            {"f": {"type": "object", "properties": {"b": TEXT}, "required": ["b"]}},
            ["f"],
        ),
        (
            "if (typeof args.path !== 'string') throw new Error('no'); return args.path;",
            {},
            ["path"],
        ),
        (
            "if (!['a', 'b'].includes(args.mode)) throw new Error('no'); return args.mode;",
            {"mode": {"enum": ["a", "b", None]}},
            [],
        ),
        ("return await mcp.fs.read({ path: args.file, limit: args.limit });", None, ["file"]),
        ("const { body } = args; await mcp.http.post({ ...args, body });", None, ["body", "url"]),
        ("return (await mcp.fs.read(args)).content;", None, ["path"]),
        (
            "const [a] = await Promise.all([mcp.fs.read({ path: args.a }), mcp.git.status()]);"
            " return a;",
            None,
            ["a"],
        ),
    ],
)
def test_what_is_annotated_or_demanded_is_certain(
    code: str, properties: JsonObject | None, required: list[JsonValue]
) -> None:
    found: JsonObject = {"properties": properties, "required": required}
    assert certain(code) == {key: value for key, value in found.items() if value}


@pytest.mark.parametrize(
    "code",
    [
        "return `${args.path}`;",
        "return args.path?.trim();",
        "return args.path && args.path.trim();",
        "return args.deep ? args.path.trim() : 1;",
        "if (args.deep) { return 1; } return args.path.trim();",
        "const path = args.path ?? 'x'; return path.trim();",
        "args.path = 'x'; return args.path.trim();",
        "Object.assign(args, { path: 'x' }); return args.path.trim();",
        "try { args.path.trim(); } catch { return 1; }",
        "const late = () => args.path.trim(); return 1;",
        "const path: unknown = args.path; return path;",
        "const path: Path = args.path; return path;",
        "if (args.path !== 'x') { return 1; } return 2;",
        "return await mcp.fs.read({ path: args.path ?? 'x' });",
        "return await mcp.fs.read({ path: args.path }).catch(() => 1);",
        "const reading = mcp.fs.read({ path: args.path }); return 1;",
        "return await Promise.allSettled([mcp.fs.read({ path: args.path })]);",
        "return args.deep && (await mcp.fs.read({ path: args.path }));",
        "return [await mcp.fs.read({ path: 'x', ...args }), await mcp.git.status(args)];",
        "return await mcp.fs.read({ path: `${args.path}` });",
        "return (mcp.fs.read({ path: `a`, ...args, limit: 1 }));",
        "const { text = await mcp.fs.read({ path: args.path }) } = args; return text;",
        "const { text = args.path.trim() } = args; return text;",
        "return await mcp.fs.read({ [args.field]: args });",
        "return await mcp['server-x']['tool-y']({ a: args.a, ...args.more });",
    ],
)
def test_what_a_program_may_do_without_is_not_certain(code: str) -> None:
    assert certain(code) is None


def test_what_a_tool_has_a_default_for_is_not_certain() -> None:
    inputs: JsonObject = {
        "properties": {"path": {"type": "string", "default": "."}, "to": {"type": "string"}},
        "required": ["path", "to"],
    }
    copy = ToolDefinition(server="fs", name="copy", input_schema=inputs)
    code = "return await mcp.fs.copy({ path: args.path, to: args.to });"
    outcome = analyze(code, tools=[copy], policy=Policy())
    assert isinstance(outcome, Analysis)
    assert outcome.parameters_schema[CERTAIN] == {"required": ["to"]}


def test_what_contradicts_its_annotation_is_not_certain() -> None:
    assert certain("return [(args.a as string), args.a - 1, args.a as number];") is None
    assert certain("const a: string = args.a ?? 'x'; return Array.isArray(args.a) ? 1 : a;") is None
