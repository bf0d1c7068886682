"""Plays the demo on an embedded stack of its own."""

import asyncio
import os
import signal
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from rich.markup import escape

from pml_cli.client import Client
from pml_cli.demo.narrator import DemoFailed, Narrator
from pml_cli.demo.servers import DemoServer, demo_servers, fetch, write_config
from pml_cli.demo.session import Session, until
from pml_cli.demo.story import Story
from pml_cli.demo.workspace import Workspace, open_workspace
from pml_cli.errors import CommandError
from pml_cli.render.events import event_line
from pml_local.approver import approver_headers
from pml_local.composition import StackOptions
from pml_local.errors import StackError
from pml_local.events import Event, PartExited, PartReady, PartRestarting
from pml_local.folder import default_home
from pml_local.ports import free_port
from pml_local.process import descendants_of, is_running
from pml_local.stack import Stack

END_SIGNALS = (signal.SIGTERM, signal.SIGHUP)
GONE_WITHIN = 5.0
MOST_FAILURES = 5
"""In a row, of a part: the demo does not wait for what only a person can mend."""


def play(home: Path | None) -> int:
    """The whole demo; 0 when everything went as told. Raises CommandError where it did not."""
    home = (home or default_home() / "demo").absolute()
    narrator = Narrator()
    narrator.console.print("[bold]PML: from a program nobody knows to a memory that is found again")
    narrator.console.print(f"[dim]All of it is kept in {escape(str(home))}")
    try:
        workspace, servers = _prepare(home, narrator)
        asyncio.run(_on_a_stack(home, narrator, workspace, servers))
    except StackError as error:
        raise DemoFailed(str(error)) from error
    except asyncio.CancelledError:
        raise DemoFailed("ended by a signal; everything was stopped") from None
    except CommandError as error:
        raise DemoFailed(f"{error}\n{_what_to_do(home)}") from error
    narrator.console.print(
        f"\n[green]Done:[/] {narrator.checks} checks held, in {narrator.seconds:.1f} s. "
        f"The memory stays: [bold]pml up --home {escape(_short(home))}[/]"
    )
    return 0


def _what_to_do(home: Path) -> str:
    logs = home / "logs"
    where = f"The logs are in {logs}. " if logs.exists() else ""
    return f"{where}To begin anew, remove {home}."


def _short(path: Path) -> str:
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


def _prepare(home: Path, narrator: Narrator) -> tuple[Workspace, Sequence[DemoServer]]:
    with narrator.step("Two MCP servers that nobody here wrote"):
        _make(home)
        workspace = open_workspace(home / "workspace")
        servers = demo_servers(workspace.folder)
        for server in servers:
            narrator.say(f"[bold]{server.name:<4}[/]{escape(server.package)}")
            narrator.say(f"    [dim]{server.told}")
        with ThreadPoolExecutor() as pool:
            list(pool.map(fetch, servers))
        write_config(home / "mcp.json", servers)
        narrator.check(True, f"both are here, for {_short(workspace.folder)}, a git repository")
    return workspace, servers


def _make(home: Path) -> None:
    """As the stack makes its folder: others may at most pass, where Postgres's account must."""
    mode = 0o711 if os.geteuid() == 0 else 0o700
    for folder in reversed((home, *home.parents)):
        if not folder.exists():
            folder.mkdir(mode=mode)


async def _on_a_stack(
    home: Path, narrator: Narrator, workspace: Workspace, servers: Sequence[DemoServer]
) -> None:
    given_up: asyncio.Future[PartRestarting] = asyncio.get_running_loop().create_future()

    def tell(event: Event) -> None:
        match event:
            case PartRestarting() if event.failures > MOST_FAILURES and not given_up.done():
                given_up.set_result(event)
            case _:
                pass
        if isinstance(event, PartReady | PartExited | PartRestarting):
            narrator.say(f"[dim]{escape(event_line(event))}")

    # Not 8080: that is for a stack of one's own, which may come up at the same time.
    options = StackOptions(home=home, gateway_port=free_port(), mcp_servers=home / "mcp.json")
    stack = Stack(options, tell)
    with _signals_cancel():
        try:
            with narrator.step("The stack: NATS, Postgres and five services, on this machine"):
                await stack.start()
                narrator.check(True, f"ready at {stack.url}")
            await _until_told(stack, given_up, narrator, workspace, servers)
        except BaseException:
            await stack.stop()
            raise
        with narrator.step("Everything stops"):
            await _stop(stack, narrator)


@contextmanager
def _signals_cancel() -> Generator[None]:
    """What ends a process ends its stack first; SIGINT does so by itself."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    for number in END_SIGNALS:
        loop.add_signal_handler(number, lambda: task.cancel() if task else None)
    try:
        yield
    finally:
        for number in END_SIGNALS:
            loop.remove_signal_handler(number)


async def _until_told(
    stack: Stack,
    given_up: asyncio.Future[PartRestarting],
    narrator: Narrator,
    workspace: Workspace,
    servers: Sequence[DemoServer],
) -> None:
    """Tell the story beside the stack; a part that fails too often ends it."""

    def tell() -> None:
        approver = approver_headers(stack.approver_key)
        with Client(stack.url) as client:
            Story(Session(client, approver), narrator, workspace).tell(servers)

    told = asyncio.create_task(asyncio.to_thread(tell))
    try:
        await asyncio.wait({told, given_up}, return_when=asyncio.FIRST_COMPLETED)
        if not told.done():
            failed = given_up.result()
            raise CommandError(
                f"{failed.name} failed {failed.failures} times in a row: {failed.reason}"
            )
        told.result()
    finally:
        told.cancel()


async def _stop(stack: Stack, narrator: Narrator) -> None:
    started = descendants_of(os.getpid())
    await stack.stop()
    until(lambda: not any(map(is_running, started)), "every process has ended", GONE_WITHIN)
    narrator.check(True, f"none of the {len(started)} processes is left")
