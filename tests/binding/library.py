"""Capabilities that the attacking programs call; `$T` is their lane."""

from typing import Final

LIBRARY: Final[dict[str, str]] = {
    # writes where it is told
    "put": 'return await mcp.$T.write({ path: args.path, content: "put" });',
    # writes where it always does, what it is told
    "note": 'return await mcp.$T.write({ path: "/safe/notes", content: args.text });',
    # calls another
    "relay": "return await capabilities.$T_put({ path: args.to });",
    # writes where it is told or else to a place of its own
    "keep": """const { path = "/safe/kept" } = args;
return await mcp.$T.write({ path, content: "kept" });""",
    # many calls of one node
    "each": """for (const path of args.paths) await mcp.$T.write({ path, content: "each" });
return args.paths.length;""",
    # reads, and answers with what it was given
    "look": """const seen = await mcp.$T.read({ path: args.path });
return { seen, path: args.path };""",
    # an answer that is a program's choice
    "say": 'return { path: args.path, value: args.value, of: "$T" };',
    # a result that feeds a call of the same capability
    "copy": """const file = await mcp.$T.read({ path: args.from });
return await mcp.$T.write({ path: args.to, content: file.content });""",
}
