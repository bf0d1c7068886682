"""Runs the demo on an embedded stack of its own."""

import asyncio
import os
import signal
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from pml_cli.client import Client
from pml_cli.demo.narrator import DemoFailed, Narrator
from pml_cli.demo.servers import DemoServer, demo_servers, fetch, write_config
from pml_cli.demo.session import Session, until
from pml_cli.demo.story import Story
from pml_cli.demo.workspace import Workspace, open_workspace
from pml_cli.errors import CommandError
from pml_cli.markup import escape
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
"""Of one part in a row; then the demo fails, since only a person can repair the cause."""


def play(home: Path | None) -> int:
    """Run the whole demo; returns 0 on success. Raises CommandError otherwise."""
    home = (home or default_home() / "demo").absolute()
    narrator = Narrator()
    narrator.console.print("[bold]PML: from an unknown program to a learned capability")
    narrator.console.print(f"[dim]Data folder: {escape(str(home))}")
    try:
        workspace, servers = _prepare(home, narrator)
        asyncio.run(_run_on_a_stack(home, narrator, workspace, servers))
    except StackError as error:
        raise DemoFailed(str(error)) from error
    except asyncio.CancelledError:
        raise DemoFailed("ended by a signal; the stack was stopped") from None
    except CommandError as error:
        raise DemoFailed(f"{error}\n{_advice(home)}") from error
    narrator.console.print(
        f"\n[green]Done:[/] {narrator.checks} checks passed in {narrator.seconds:.1f} s. "
        f"What was learned is stored: [bold]pml up --home {escape(_short(home))}[/]"
    )
    return 0


def _advice(home: Path) -> str:
    logs = home / "logs"
    where = f"The logs are in {logs}. " if logs.exists() else ""
    return f"{where}To start over, remove {home}."


def _short(path: Path) -> str:
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


def _prepare(home: Path, narrator: Narrator) -> tuple[Workspace, Sequence[DemoServer]]:
    with narrator.step("Two third-party MCP servers"):
        _make(home)
        workspace = open_workspace(home / "workspace")
        servers = demo_servers(workspace.folder)
        for server in servers:
            narrator.say(f"[bold]{server.name:<4}[/]{escape(server.package)}")
            narrator.say(f"    [dim]{server.description}")
        with ThreadPoolExecutor() as pool:
            list(pool.map(fetch, servers))
        write_config(home / "mcp.json", servers)
        narrator.check(
            True, f"both are installed, for {_short(workspace.folder)}, a git repository"
        )
    return workspace, servers


def _make(home: Path) -> None:
    """Create it like the stack's own folder: others may at most traverse it, for Postgres's
    account."""
    mode = 0o711 if os.geteuid() == 0 else 0o700
    for folder in reversed((home, *home.parents)):
        if not folder.exists():
            folder.mkdir(mode=mode)


async def _run_on_a_stack(
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

    # Not 8080: the user's own stack may start at the same time.
    options = StackOptions(home=home, gateway_port=free_port(), mcp_servers=home / "mcp.json")
    stack = Stack(options, tell)
    with _signals_cancel():
        try:
            with narrator.step("Start the stack: NATS, Postgres and five services on this machine"):
                await stack.start()
                narrator.check(True, f"ready at {stack.url}")
            await _tell_story(stack, given_up, narrator, workspace, servers)
        except BaseException:
            await stack.stop()
            raise
        with narrator.step("Stop the stack"):
            await _stop(stack, narrator)


@contextmanager
def _signals_cancel() -> Generator[None]:
    """Cancel the task on SIGTERM and SIGHUP, so that the stack stops first; SIGINT already does."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    for number in END_SIGNALS:
        loop.add_signal_handler(number, lambda: task.cancel() if task else None)
    try:
        yield
    finally:
        for number in END_SIGNALS:
            loop.remove_signal_handler(number)


async def _tell_story(
    stack: Stack,
    given_up: asyncio.Future[PartRestarting],
    narrator: Narrator,
    workspace: Workspace,
    servers: Sequence[DemoServer],
) -> None:
    """Run the story in a thread; a part of the stack that fails too often ends it."""

    def tell() -> None:
        approver = approver_headers(stack.approver_key)
        Story(Session(Client(stack.url), approver), narrator, workspace).tell(servers)

    story = asyncio.create_task(asyncio.to_thread(tell))
    try:
        await asyncio.wait({story, given_up}, return_when=asyncio.FIRST_COMPLETED)
        if not story.done():
            failed = given_up.result()
            raise CommandError(
                f"{failed.name} failed {failed.failures} times in a row: {failed.reason}"
            )
        story.result()
    finally:
        story.cancel()


async def _stop(stack: Stack, narrator: Narrator) -> None:
    started = descendants_of(os.getpid())
    await stack.stop()
    until(lambda: not any(map(is_running, started)), "every process has ended", GONE_WITHIN)
    narrator.check(True, f"all {len(started)} processes have ended")
