"""An agent's way from a question to the answer, and back to what was learned on it.

`python examples/agent.py [URL] [--yes]` with the servers of examples/mcp.json, after
`pml approvals elicitation on`. The approval is asked for on this terminal; `--yes` gives it.
"""

import argparse
import asyncio

from mcp import Client
from mcp.client import ClientRequestContext
from mcp_types import CallToolResult, ElicitRequestParams, ElicitResult, TextContent

WRITE = """
await mcp.fs.write_file({ path: args.path, content: args.text });
return await mcp.fs.read_text_file({ path: args.path });
"""


async def main(url: str, *, yes: bool) -> None:
    """Go the whole way."""

    async def decide(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        print(params.message)
        said = "y" if yes else await asyncio.to_thread(input, "approve? [y/N] ")
        decision = "approve" if said.strip().lower() == "y" else "deny"
        return ElicitResult(action="accept", content={"decision": decision})

    async with (
        Client(f"{url}/mcp", elicitation_callback=decide) as client,
        client.listen(tools_list_changed=True) as changes,
    ):
        print("\n1. A program that writes: the person at the client approves it.")
        program = {
            "code": WRITE,
            "args": {"path": "note.txt", "text": "milk"},
            "name": "notes:write",
            "intent": "write a note into a file",
        }
        show(await client.call_tool("pml_execute", program))

        print("\n2. It is a capability now, and a tool: call it by its name.")
        async with asyncio.timeout(30):
            while "cap_notes_write" not in await tools_of(client):
                await anext(changes)
        note = {"path": "note.txt", "text": "milk and bread"}
        show(await client.call_tool("cap_notes_write", note))

        print("\n3. It is found by what it is for.")
        show(await client.call_tool("pml_discover", {"intent": "put a note down", "limit": 3}))


async def tools_of(client: Client) -> set[str]:
    """Return the names of the tools of all pages."""
    page = await client.list_tools()
    names = {tool.name for tool in page.tools}
    while page.next_cursor is not None:
        page = await client.list_tools(cursor=page.next_cursor)
        names |= {tool.name for tool in page.tools}
    return names


def show(result: CallToolResult) -> None:
    """Print what the model would read."""
    for block in result.content:
        if isinstance(block, TextContent):
            print("   ", block.text[:400])
    if result.is_error:
        raise SystemExit("the call failed")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url", nargs="?", default="http://127.0.0.1:8080")
    parser.add_argument("--yes", action="store_true", help="approve without asking")
    given = parser.parse_args()
    asyncio.run(main(given.url, yes=given.yes))
