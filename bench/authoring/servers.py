"""MCP servers of the authoring benchmark, with fixed data: `python servers.py NAME`.

`files` and `git` answer in text, as the reference servers do; `tracker` in structured objects and
lists; `notes` in JSON as text; `mail` in several blocks.
"""

import json
import sys
from collections.abc import Callable, Mapping
from typing import Any, Final

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import EmbeddedResource, TextContent, TextResourceContents
from pydantic import BaseModel

READS: Final[Any] = {"readOnlyHint": True}

FILES: Final[dict[str, str]] = {
    "/project/README.md": "# Acme shop\n\nA small shop.\n\nTODO: write the install section\n",
    "/project/package.json": '{"name": "acme-shop", "version": "2.3.1", "dependencies": '
    '{"left-pad": "1.0.0", "zod": "3.22.0"}}',
    "/project/src/cart.ts": "export function total(items) {\n  // TODO: taxes\n  return 0;\n}\n",
    "/project/src/main.ts": "import { total } from './cart';\nconsole.log(total([]));\n",
    "/project/data/orders.csv": "id,customer,amount\n1,ada,30\n2,mira,12\n3,ada,8\n",
    "/project/data/settings.json": '{"currency": "EUR", "limits": {"daily": 500, "weekly": 2000}}',
}
COMMITS: Final = (
    ("a1f9c2e", "Ada", "2026-11-20", "Add taxes to the cart"),
    ("b7730de", "Mira", "2026-11-19", "Fix the price of bundles"),
    ("c0ffee1", "Ada", "2026-11-17", "Write a readme"),
)


class Issue(BaseModel):
    number: int
    title: str
    state: str
    labels: list[str]
    assignee: str | None = None
    comments: int = 0


class IssuePage(BaseModel):
    issues: list[Issue]
    total_count: int


class Comment(BaseModel):
    author: str
    body: str


ISSUES: Final = [
    Issue(number=1, title="Cart total is 0", state="open", labels=["bug"], assignee="ada"),
    Issue(number=2, title="Add dark mode", state="open", labels=["feature"], comments=2),
    Issue(number=3, title="Crash on empty order", state="closed", labels=["bug", "urgent"]),
    Issue(number=4, title="Price of bundles is wrong", state="open", labels=["bug", "urgent"]),
]
COMMENTS: Final[dict[int, list[Comment]]] = {
    2: [Comment(author="mira", body="Yes please"), Comment(author="ada", body="Next month")]
}
NOTES: Final[dict[str, dict[str, Any]]] = {
    "n1": {"id": "n1", "title": "Standup", "tags": ["work"], "body": "Ada: taxes. Mira: bundles."},
    "n2": {"id": "n2", "title": "Groceries", "tags": ["home"], "body": "milk, eggs, bread"},
    "n3": {"id": "n3", "title": "Retro", "tags": ["work", "team"], "body": "Ship smaller."},
}
MESSAGES: Final[dict[str, dict[str, str]]] = {
    "m1": {"from": "ada@acme.test", "subject": "Invoice 17", "body": "Please pay 42 EUR."},
    "m2": {"from": "mira@acme.test", "subject": "Lunch?", "body": "At noon?"},
    "m3": {"from": "ada@acme.test", "subject": "Invoice 18", "body": "Please pay 8 EUR."},
}


def files() -> MCPServer:
    """Build a server of files, which answers in text."""
    server = MCPServer("files")
    tool = _adder(server)

    @tool(structured_output=False, annotations=READS)
    def read_file(path: str) -> str:
        """Read the complete contents of a file as text."""
        if path not in FILES:
            raise ToolError(f"ENOENT: no such file or directory, open '{path}'")
        return FILES[path]

    @tool(structured_output=False, annotations=READS)
    def list_directory(path: str) -> str:
        """Get a listing of all files and directories in a path, with [FILE] and [DIR] prefixes."""
        prefix = path.rstrip("/") + "/"
        below = {name[len(prefix) :] for name in FILES if name.startswith(prefix)}
        if not below:
            raise ToolError(f"ENOENT: no such file or directory, scandir '{path}'")
        entries = {name.split("/")[0]: "/" in name for name in below}
        return "\n".join(
            f"[{'DIR' if is_folder else 'FILE'}] {name}"
            for name, is_folder in sorted(entries.items())
        )

    @tool(structured_output=False, annotations=READS)
    def search_files(path: str, pattern: str) -> str:
        """Search for files below a path whose name contains a pattern; full paths, one a line."""
        found = [name for name in sorted(FILES) if name.startswith(path) and pattern in name]
        return "\n".join(found) or "No matches found"

    @tool(structured_output=False, annotations=READS)
    def get_file_info(path: str) -> str:
        """Get the metadata of a file: size in bytes, type, and permissions."""
        if path not in FILES:
            raise ToolError(f"ENOENT: no such file or directory, stat '{path}'")
        return f"size: {len(FILES[path])}\nisDirectory: false\nisFile: true\npermissions: 644"

    @tool(structured_output=False)
    def write_file(path: str, content: str) -> str:
        """Create a new file or completely overwrite an existing file."""
        FILES[path] = content
        return f"Successfully wrote to {path}"

    return server


def git() -> MCPServer:
    """Build a server of a repository, which answers in text."""
    server = MCPServer("git")
    tool = _adder(server)

    @tool(structured_output=False, annotations=READS)
    def git_status(repo_path: str) -> str:
        """Shows the working tree status."""
        return "Repository status:\nOn branch main\nChanges not staged:\n\tmodified:   src/cart.ts"

    @tool(structured_output=False, annotations=READS)
    def git_log(repo_path: str, max_count: int = 10) -> list[TextContent]:
        """Shows the commit logs."""
        return [
            TextContent(
                type="text", text=f"Commit: {sha}\nAuthor: {who}\nDate: {day}\nMessage: {message}"
            )
            for sha, who, day, message in COMMITS[:max_count]
        ]

    @tool(structured_output=False, annotations=READS)
    def git_branch(repo_path: str) -> str:
        """List the branches, the current one marked by an asterisk."""
        return "* main\n  feature/taxes\n  fix/bundles"

    @tool(structured_output=False)
    def git_commit(repo_path: str, message: str) -> str:
        """Records changes to the repository."""
        if not message.strip():
            raise ToolError("the message is empty")
        return "Changes committed successfully with hash d00d1e5"

    return server


def tracker() -> MCPServer:
    """Build a server of issues, which answers in structured objects and lists."""
    server = MCPServer("tracker")
    tool = _adder(server)

    @tool(annotations=READS)
    def list_issues(state: str = "open", label: str | None = None) -> IssuePage:
        """List the issues of the project, `state`: open, closed or all."""
        found = [
            each
            for each in ISSUES
            if state in ("all", each.state) and (label is None or label in each.labels)
        ]
        return IssuePage(issues=found, total_count=len(found))

    @tool(annotations=READS)
    def get_issue(issue_number: int) -> Issue:
        """Get one issue by its number."""
        return _issue(issue_number)

    @tool(annotations=READS)
    def list_comments(issue_number: int) -> list[Comment]:
        """List the comments on an issue."""
        return COMMENTS.get(_issue(issue_number).number, [])

    @tool()
    def create_issue(title: str, labels: list[str] | None = None) -> Issue:
        """Create an issue."""
        made = Issue(number=len(ISSUES) + 1, title=title, state="open", labels=labels or [])
        return made

    @tool()
    def add_comment(issue_number: int, body: str) -> Comment:
        """Comment on an issue."""
        if issue_number != len(ISSUES) + 1:  # made by create_issue, and kept nowhere
            _issue(issue_number)
        return Comment(author="me", body=body)

    @tool(annotations=READS)
    def count_issues(state: str = "open") -> int:
        """Count the issues in a state."""
        return sum(each.state == state for each in ISSUES)

    return server


def notes() -> MCPServer:
    """Build a server of notes, which answers in JSON as text."""
    server = MCPServer("notes")
    tool = _adder(server)

    @tool(structured_output=False, annotations=READS)
    def search_notes(query: str = "", tag: str = "") -> str:
        """Search notes by text or tag. Returns a JSON array of {id, title, tags}."""
        found = [
            {key: note[key] for key in ("id", "title", "tags")}
            for note in NOTES.values()
            if query.lower() in json.dumps(note).lower() and (not tag or tag in note["tags"])
        ]
        return json.dumps(found)

    @tool(structured_output=False, annotations=READS)
    def get_note(id: str) -> str:
        """Get a note as JSON: {id, title, tags, body}."""
        if id not in NOTES:
            raise ToolError(f"no note {id}")
        return json.dumps(NOTES[id])

    @tool(structured_output=False)
    def save_note(title: str, body: str, tags: list[str] | None = None) -> str:
        """Save a new note. Returns its id."""
        return f"Saved note n{len(NOTES) + 1}"

    return server


def mail() -> MCPServer:
    """Build a server of mail, which answers in several blocks."""
    server = MCPServer("mail")
    tool = _adder(server)

    @tool(structured_output=False, annotations=READS)
    def list_messages(folder: str = "inbox") -> list[TextContent]:
        """List the messages of a folder: one block for each, with id, sender and subject."""
        return [
            TextContent(type="text", text=f"{id} | {it['from']} | {it['subject']}")
            for id, it in MESSAGES.items()
        ]

    @tool(structured_output=False, annotations=READS)
    def read_message(id: str) -> list[TextContent | EmbeddedResource]:
        """Read a message: its headers, then its body as a resource."""
        if id not in MESSAGES:
            raise ToolError(f"no message {id}")
        it = MESSAGES[id]
        body = TextResourceContents(uri=f"mail://{id}", mime_type="text/plain", text=it["body"])
        headers = f"From: {it['from']}\nSubject: {it['subject']}"
        return [
            TextContent(type="text", text=headers),
            EmbeddedResource(type="resource", resource=body),
        ]

    @tool()
    def send_message(to: list[str], subject: str, body: str) -> dict[str, str]:
        """Send a message."""
        return {"id": "m4", "status": "queued"}

    return server


SERVERS: Final[Mapping[str, Callable[[], MCPServer]]] = {
    "files": files,
    "git": git,
    "tracker": tracker,
    "notes": notes,
    "mail": mail,
}


def _adder(server: MCPServer) -> Any:
    return server.tool


def _issue(number: int) -> Issue:
    found = next((each for each in ISSUES if each.number == number), None)
    if found is None:
        raise ToolError(f"no issue {number}")
    return found


if __name__ == "__main__":
    SERVERS[sys.argv[1]]().run("stdio")
