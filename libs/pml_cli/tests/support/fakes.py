"""A scripted gateway, and the command run against it as from a shell."""

import json
import sys
import threading
from collections.abc import Generator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from pml_cli.app import main

KEY = "the key of who decides"
APPROVER = {"Authorization": f"Bearer {KEY}"}


@dataclass
class Gateway:
    """Answers by method and path, and records requests."""

    url: str
    answers: dict[str, tuple[int, object]] = field(default_factory=dict[str, tuple[int, object]])
    asked: list[tuple[str, object]] = field(default_factory=list[tuple[str, object]])
    keys: list[str] = field(default_factory=list[str])
    """Authorization headers of the requests that had one."""


@pytest.fixture
def gateway(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Generator[Gateway]:
    """Listen on loopback; the command has the approver's key."""

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            length = int(self.headers.get("content-length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            line = f"{self.command} {self.path.split('?')[0]}"
            scripted.asked.append((f"{self.command} {self.path}", body))
            if key := self.headers.get("authorization"):
                scripted.keys.append(f"{line} {key}")
            status, answer = scripted.answers[line]
            text = answer.encode() if isinstance(answer, str) else json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_POST = do_PATCH = do_DELETE = _answer  # noqa: N815 - the names http.server calls

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    scripted = Gateway(f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    monkeypatch.setenv("PML_URL", scripted.url)
    key_file = tmp_path / "approver.key"
    key_file.write_text(KEY)
    monkeypatch.setenv("PML_APPROVER_KEY_FILE", str(key_file))
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "200")
    yield scripted
    server.shutdown()
    thread.join()
    server.server_close()


def pml(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    """Run the command as a shell would; returns its exit code."""
    monkeypatch.setattr(sys, "argv", ["pml", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    code = ended.value.code
    return code if isinstance(code, int) else 0
