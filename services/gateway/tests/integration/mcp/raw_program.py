"""An MCP server over stdio that writes what it is told to, run as a program: the SDK's servers
cannot be malformed.

Its argument is a JSON file with the `version` of the protocol, its `tools`, and for each tool the
`lines` that answer a call of it, in which $ID stands for the request's id.
"""

import json
import sys
from pathlib import Path
from typing import Any

MODERN = "2026-07-28"
CACHE = {"ttlMs": 0, "cacheScope": "private", "resultType": "complete"}


def answer_of(method: str, told: dict[str, Any]) -> dict[str, Any] | None:
    """Return the result of a request; None where there is no such method."""
    info = {"name": "raw", "version": "1"}
    modern = told["version"] == MODERN
    match method:
        case "server/discover" if modern:
            versions = {"supportedVersions": [MODERN], "serverInfo": info}
            return {**versions, "capabilities": {"tools": {}}, **CACHE}
        case "initialize" if not modern:
            return {
                "protocolVersion": told["version"],
                "capabilities": {"tools": {}},
                "serverInfo": info,
            }
        case "tools/list":
            return {"tools": told["tools"], **(CACHE if modern else {})}
        case "ping":
            return {}
        case _:
            return None


def main() -> None:
    told = json.loads(Path(sys.argv[1]).read_text())
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        if message["method"] == "tools/call":
            for answer in told["lines"][message["params"]["name"]]:
                text = answer.replace("$ID", json.dumps(message["id"]))
                sys.stdout.buffer.write(text.encode("utf-8", "surrogateescape") + b"\n")
        else:
            result = answer_of(message["method"], told)
            body = {"result": result}
            if result is None:
                body = {"error": {"code": -32601, "message": "Method not found"}}
            text = json.dumps({"jsonrpc": "2.0", "id": message["id"], **body})
            sys.stdout.buffer.write(text.encode() + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
