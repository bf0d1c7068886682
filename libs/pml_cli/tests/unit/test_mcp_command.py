"""`pml mcp`: which gateway it uses, and the stack that it starts."""

import sys
from pathlib import Path

import pytest

from pml_cli.bridge.bridge import NoGateway
from pml_cli.commands.mcp import Stack
from pml_local.ports import free_port
from pml_local.state import read_state

UP = """
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from os import getpid
from pathlib import Path
from pml_local.state import StackState, write_state

class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
    def log_message(self, *args):
        pass

assert sys.argv[1:3] == ["up", "--home"]
server = HTTPServer(("127.0.0.1", 0), Handler)
url = f"http://127.0.0.1:{server.server_address[1]}"
state = StackState(pid=getpid(), url=url, nats_url="", postgres_dsn="", parts={})
write_state(Path(sys.argv[3]), state)
server.serve_forever()
"""


async def test_a_stack_is_started_where_none_runs_and_ends_with_the_command(tmp_path: Path) -> None:
    up, home = tmp_path / "up.py", tmp_path / "data"
    up.write_text(UP, encoding="utf-8")
    stack = Stack(home, None, start=True, program=[sys.executable, str(up)])
    other = Stack(home, None, start=False)
    with pytest.raises(NoGateway, match=f"no PML stack runs on {home}: run `pml up --home"):
        await other.locate()
    try:
        url = await stack.locate()
        state = read_state(home)
        assert state is not None
        assert url == state.url == await stack.locate() == await other.locate()
    finally:
        await stack.stop()
    assert read_state(home) is None


async def test_a_stack_that_does_not_start_is_told_with_its_log(tmp_path: Path) -> None:
    program = [sys.executable, "-c", "raise SystemExit('no disk')"]
    stack = Stack(tmp_path, None, start=True, program=program)
    with pytest.raises(NoGateway, match="does not start: see"):
        await stack.locate()
    await stack.stop()
    assert "no disk" in (tmp_path / "mcp-started.log").read_text(encoding="utf-8")


async def test_a_named_gateway_that_does_not_answer_is_told(tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(NoGateway, match=f"no PML gateway answers at {url}"):
        await Stack(tmp_path, url, start=True).locate()
