"""TypeScript declarations for programs: tools, capabilities, the sandbox."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pydantic import JsonValue

from pml_analysis.syntax.member_names import is_member
from pml_analysis.typing.json_schema_types import SchemaTypes
from pml_analysis.typing.sandbox_types import SANDBOX, SANDBOX_NAMES
from pml_analysis.typing.type_text import block, comment, indented, key, pascal, quoted
from pml_common.contracts.tool import JsonObject, ToolDefinition

DECLARED: Final = ("mcp", "capabilities", *SANDBOX_NAMES)
"""Every name that declarations declare as a value."""

_HEAD: Final = """\
// What a PML program can use: it is the body of an async function. The sandbox has the language
// and what is declared here, so check with {"compilerOptions": {"lib": ["esnext"], "types": []}}.
/// <reference lib="esnext" />

"""
_TAIL: Final = """\
type PmlNamed<Name> = Name extends keyof PmlCalls ? PmlCalls[Name]
  : (args?: object) => Promise<any>;
interface PmlMcp extends PmlServers {
  /** Calls a tool or a capability by its name: `server:tool`, `cap:namespace:action`. */
  readonly call: <Name extends keyof PmlCalls | (string & {})>(
    name: Name,
    ...given: PmlNamed<Name> extends (...given: infer Given) => unknown ? Given : never
  ) => PmlNamed<Name> extends (...given: never) => infer Gives ? Gives : never;
}
declare const mcp: PmlMcp;
declare const capabilities: PmlCapabilities;
"""
_BY_NAME: Final = "call"
"""`mcp.call` is no server: the tools of one of that name are called by id alone."""

_COMBINATIONS: Final = ("anyOf", "oneOf")
NONE: Final[Mapping[str, ToolDefinition]] = {}
_ANYTHING: Final = "{ [key: string]: any }"
_OTHERS: Final = "readonly [name: string]: (args?: any) => Promise<any>"


def declarations(
    tools: Sequence[ToolDefinition], capabilities: Mapping[str, ToolDefinition] = NONE
) -> str:
    """Build a `.d.ts` of everything a program can name; its own types begin with `Pml`.

    Of several tools with one name the last counts. Capabilities are listed under the names that
    programs call them by, as the tools that their callers see; others may be called too, with
    anything.
    """
    named: dict[str, str] = {}
    servers: dict[str, dict[str, _Callable]] = {}
    for tool in tools:
        servers.setdefault(tool.server, {})[tool.name] = _callable(
            (tool.server, tool.name), tool, named
        )
    learned = {
        name: _callable(("capability", name), it, named) for name, it in capabilities.items()
    }
    members = {name: each for name, each in learned.items() if name.isidentifier()}
    shelves = [
        f"readonly {key(server)}: {block(_members(reached))}"
        for server, known in servers.items()
        if (
            reached := {tool: it for tool, it in known.items() if not is_called_by_id(server, tool)}
        )
    ]
    calls = [*_calls(servers), *_capability_calls(learned)]
    return "".join(
        [
            _HEAD,
            SANDBOX,
            "\n",
            *(f"type {name} = {text};\n" for name, text in named.items()),
            f"/** The tools of the connected servers. */\ninterface PmlServers {_body(shelves)}\n",
            "/** What was learned. */\n",
            f"interface PmlCapabilities {_body([*_members(members), _OTHERS])}\n",
            f"/** All of them by name, for `mcp.call`. */\ninterface PmlCalls {_body(calls)}\n",
            _TAIL,
        ]
    )


def tool_signature(tool: ToolDefinition) -> str:
    """Build the signature of a call, after the types that it refers to by name:
    `mcp.fs.read(args: { path: string }): Promise<any>`."""
    return _signature(called_by(tool), (tool.server, tool.name), tool)


def result_type(tool: ToolDefinition) -> str:
    """Return the type of a tool's result, `any` where that is not known."""
    result = _callable((tool.server, tool.name), tool, {}).result
    return result.removeprefix("Promise<").removesuffix(">")


def called_by(tool: ToolDefinition) -> str:
    """Return a call of a tool up to its arguments: `mcp.fs.read(`."""
    return opening(tool.server, tool.name)


def opening(server: str, tool: str) -> str:
    """Return a call of the tool of this path up to its arguments."""
    if is_called_by_id(server, tool):
        return f"mcp.call({quoted(f'{server}:{tool}')}, "
    return f"mcp{member(server)}{member(tool)}("


def capability_signature(name: str, parameters_schema: JsonObject) -> str:
    """Build the same of a capability, by the name that programs call it by."""
    it = ToolDefinition(server="capability", name=name, input_schema=parameters_schema)
    return _signature(f"capabilities{member(name)}(", (it.server, it.name), it)


def as_module(text: str) -> str:
    """Return declarations as a module, whose names need an import."""
    return f"{text}export {{ {', '.join(DECLARED)} }};\n"


_LEARNED: Final = "Learned: its results so far had this type; others may differ."


@dataclass(frozen=True)
class _Callable:
    doc: str
    parameters: str
    result: str

    @property
    def signature(self) -> str:
        """Its type."""
        return f"({self.parameters}) => {self.result}"


def _callable(path: tuple[str, str], tool: ToolDefinition, named: dict[str, str]) -> _Callable:
    name = f"Pml{pascal(*path)}"
    takes = SchemaTypes(tool.input_schema, name, True, named).text()
    gives = "any"
    output = tool.learned_output if tool.output_schema is None else tool.output_schema
    if output is not None:
        gives = SchemaTypes(output, f"{name}Result", False, named).text()
    mark = "?" if _may_be_left_out(tool.input_schema) else ""
    parameters = f"args{mark}: {_ANYTHING if takes == 'unknown' else takes}"
    told = [tool.description or tool.title or ""]
    if tool.output_schema is None and output is not None:
        told.append(_LEARNED)
    return _Callable("\n".join(filter(None, told)), parameters, f"Promise<{gives}>")


def _signature(called: str, path: tuple[str, str], tool: ToolDefinition) -> str:
    named: dict[str, str] = {}
    it = _callable(path, tool, named)
    types = "".join(f"type {name} = {text};\n" for name, text in named.items())
    return f"{types}{called}{it.parameters}): {it.result}"


def is_called_by_id(server: str, tool: str) -> bool:
    """Whether a tool is called by its id alone."""
    return server == _BY_NAME or not is_member(server, tool)


def member(name: str) -> str:
    """Return the access to a member of this name."""
    return f".{name}" if key(name) == name else f"[{quoted(name)}]"


def _may_be_left_out(schema: JsonObject) -> bool:
    """Whether a call may omit its arguments; an approximation."""
    every, *combinations = (
        [schema, *_parts(schema, "allOf")],
        *(_parts(schema, one) for one in _COMBINATIONS),
    )
    return not any(map(_requires, every)) and not any(
        one and all(map(_requires, one)) for one in combinations
    )


def _requires(schema: JsonValue) -> bool:
    return isinstance(schema, dict) and bool(schema.get("required"))


def _parts(schema: JsonObject, name: str) -> list[JsonValue]:
    found = schema.get(name)
    return found if isinstance(found, list) else []


def _members(known: Mapping[str, _Callable]) -> list[str]:
    return [
        f"{comment(each.doc)}readonly {key(name)}: {each.signature}" for name, each in known.items()
    ]


def _calls(servers: Mapping[str, Mapping[str, _Callable]]) -> Iterator[str]:
    for server, known in servers.items():
        for tool, each in known.items():
            path = f"PmlServers[{quoted(server)}][{quoted(tool)}]"
            type_ = each.signature if is_called_by_id(server, tool) else path
            yield f"{quoted(f'{server}:{tool}')}: {type_}"


def _capability_calls(learned: Mapping[str, _Callable]) -> Iterator[str]:
    for name, each in learned.items():
        yield f"{quoted(f'cap:{name}')}: {each.signature}"


def _body(members: Sequence[str]) -> str:
    return "{\n" + "".join(f"{indented(member)};\n" for member in members) + "}"
