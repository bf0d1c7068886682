"""One `deno lsp` process: the TypeScript compiler inside Deno, kept warm, used over stdio in the
Language Server Protocol. Only opening, closing and diagnosing a text are used."""

import asyncio
import json
import os
from asyncio.subprocess import Process
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

from typing_extensions import override

from pml_analysis.typing.type_check import Finding
from pml_common.stdio_process import StdioProcess

Json = Mapping[str, Any]

_FOLDER: Final = Path(__file__).parent / "compiler_options"
"""Holds the compiler's options only; the opened texts exist in memory."""

_MAX_DECLARED: Final = 8
_YOUNG: Final = "--max-semi-space-size=1"
"""MiB for each half of new objects: 120 MiB after 40 programs instead of 165, in the same time."""
_MAX_MESSAGE_BYTES: Final = 32 * 2**20
_ERROR: Final = 1
_NO_METHOD: Final = -32601
_CAPABILITIES: Final[Json] = {"textDocument": {"diagnostic": {}}}
_OPTIONS: Final[Json] = {"enable": True, "config": "deno.json", "lint": False}


class CheckerLost(Exception):
    """The process is gone, its output is invalid, or it failed on a program; the message says
    which."""


class CheckerEnded(CheckerLost):
    """The process is gone."""


@dataclass(frozen=True)
class CheckerCommand:
    """The command line of a process: the Deno binary, and the heap limit of its compiler."""

    deno: str
    heap_mib: int = 512
    start_patience_s: float = 15.0

    @property
    def argv(self) -> Sequence[str]:
        """The arguments, without permission flags: it runs nothing, and the texts it reads import
        only texts of ours (the analysis refuses every form of import)."""
        return (self.deno, "lsp", "--quiet")

    @property
    def environment(self) -> Mapping[str, str]:
        """The whole environment: no cache on disk, and an unused proxy address that blocks
        downloads."""
        unused = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"), "http://127.0.0.1:9")
        return unused | {
            "DENO_DIR": "/dev/null/none",
            "DENO_NO_UPDATE_CHECK": "1",
            "DENO_V8_FLAGS": f"--max-old-space-size={self.heap_mib},{_YOUNG}",
            "NO_COLOR": "1",
        }


class CheckerProcess(StdioProcess):
    """Handles one request at a time; unusable after an error or a cancelled request. Every method
    that communicates raises CheckerLost."""

    lost = CheckerLost

    def __init__(self, process: Process) -> None:
        super().__init__(process)
        self._requests = 0
        self._declared: OrderedDict[str, None] = OrderedDict()
        self.checks = 0

    @classmethod
    async def start(cls, command: CheckerCommand) -> "CheckerProcess":
        """Start a process that has loaded the language's own declarations."""
        patience_s = command.start_patience_s
        return await cls._start(command.argv, command.environment, patience_s, _FOLDER)

    async def check(self, module: str, declared: str, declarations: str) -> Sequence[Finding]:
        """Return the errors of a module that imports `declared`, the unique name of these
        declarations."""
        if declared not in self._declared:
            self._open(declared, declarations)
        self._declared[declared] = None
        self._declared.move_to_end(declared)
        if len(self._declared) > _MAX_DECLARED:
            self._close(self._declared.popitem(last=False)[0])
        # A unique name: the checker caches diagnostics of a name beyond its closing.
        self.checks += 1
        name = f"program{self.checks}.ts"
        self._open(name, module)
        found = await self._request(
            "textDocument/diagnostic", {"textDocument": {"uri": _uri(name)}}
        )
        self._close(name)
        try:
            return _findings(found)
        except (KeyError, TypeError) as error:
            raise CheckerLost(f"the checker cannot be understood: {error!r}") from error

    @override
    async def _until_ready(self) -> None:
        folder = _FOLDER.as_uri()
        parameters: Json = {
            "processId": os.getpid(),  # it exits after this process
            "rootUri": folder,
            "workspaceFolders": [{"uri": folder, "name": "compiler_options"}],
            "capabilities": _CAPABILITIES,
            "initializationOptions": _OPTIONS,
        }
        await self._request("initialize", parameters)
        self._notify("initialized", {})
        await self.check("export {};", "nothing.d.ts", "export {};")

    def _open(self, name: str, text: str) -> None:
        document = {"uri": _uri(name), "languageId": "typescript", "version": 1, "text": text}
        self._notify("textDocument/didOpen", {"textDocument": document})

    def _close(self, name: str) -> None:
        self._notify("textDocument/didClose", {"textDocument": {"uri": _uri(name)}})

    def _notify(self, method: str, params: Json) -> None:
        self._write({"method": method, "params": params})

    async def _request(self, method: str, params: Json) -> Json:
        self._requests += 1
        self._write({"id": self._requests, "method": method, "params": params})
        while True:
            message = await self._read()
            if "method" in message:
                if "id" in message:  # a request by the server: none is needed
                    refusal = {"code": _NO_METHOD, "message": method}
                    self._write({"id": message["id"], "error": refusal})
            elif message.get("id") == self._requests:
                break
        if "result" not in message:
            raise CheckerLost("the checker gave this program up")
        return message["result"]

    def _write(self, message: Json) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        stdin = cast(asyncio.StreamWriter, self._process.stdin)
        stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)

    async def _read(self) -> Json:
        stdout = cast(asyncio.StreamReader, self._process.stdout)
        try:
            head = await stdout.readuntil(b"\r\n\r\n")
            size = _size(head)
            return json.loads(await stdout.readexactly(size))
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            raise CheckerEnded("the checker's process ended") from error
        except (ValueError, asyncio.LimitOverrunError) as error:
            raise CheckerLost(f"the checker cannot be understood: {error}") from error


def _uri(name: str) -> str:
    return f"{_FOLDER.as_uri()}/{name}"


def _size(head: bytes) -> int:
    """Return the length of the body that a header announces. Raises ValueError."""
    for line in head.decode("ascii").split("\r\n"):
        name, _, value = line.partition(":")
        if name.lower() == "content-length" and int(value) <= _MAX_MESSAGE_BYTES:
            return int(value)
    raise ValueError(f"its message begins with {head[:80]!r}")


def _findings(report: Json) -> list[Finding]:
    """Return the compiler's own errors in a diagnostic report. Raises CheckerLost for an error of
    Deno itself: then the declarations are missing, and the compiler reports nothing."""
    errors = [item for item in report["items"] if item["severity"] == _ERROR]
    strange = [item for item in errors if item["source"] != "deno-ts"]
    if strange:
        raise CheckerLost(f"the checker did not find its declarations: {strange[0]['message']}")
    return [
        Finding(
            line=item["range"]["start"]["line"],
            column=item["range"]["start"]["character"],
            code=item["code"],
            message=item["message"],
        )
        for item in errors
    ]
