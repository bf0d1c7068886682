"""Real sandboxes inside walls of one kind, escape attempts, and reused processes."""

import asyncio
import json
import shutil
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import JsonValue

from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_executor.adapters.deno_command import DenoCommand
from pml_executor.adapters.deno_sandbox import DenoSandbox
from pml_executor.adapters.walls import (
    Build,
    SandboxConfig,
    WallsUnavailable,
    bubblewrap_command,
    landlock_command,
    seccomp_command,
    unwalled_command,
    verify_walls,
)
from pml_executor.domain.protocol import Answer, CallMade, Noted, Program, Returned
from pml_executor.domain.resources import Resources
from pml_executor.domain.walls import ENVIRONMENT
from pml_executor.ports import SandboxBroken
from pml_executor.settings import ExecutorSettings

BUILDS: dict[str, Build] = {
    "bubblewrap": bubblewrap_command,
    "landlock": landlock_command,
    "seccomp": seccomp_command,
    "none": unwalled_command,
}
ATTEMPTS = """
const [port, parent, secret, written, socket] = JSON.parse(Deno.env.get("TZ"));
const tries = {
  hosts: () => Deno.readTextFileSync("/etc/hosts"),
  secret: () => Deno.readTextFileSync(secret),
  home: () => [...Deno.readDirSync("/root")],
  write: () => Deno.writeTextFileSync(written, "x"),
  environment: () => Deno.readTextFileSync(`/proc/${parent}/environ`),
  connect: async () => (await Deno.connect({ hostname: "127.0.0.1", port })).close(),
  listen: () => Deno.listen({ port: 0 }).close(),
  datagram: () => Deno.listenDatagram({ port: 0, transport: "udp" }).close(),
  run: () => new Deno.Command("/bin/true").outputSync(),
  again: () => new Deno.Command(Deno.execPath(), { args: ["--version"] }).outputSync(),
  signal: () => Deno.kill(parent, "SIGCONT"),
  socket: async () => (await Deno.connect({ transport: "unix", path: socket })).close(),
};
const said = {};
for (const [name, attempt] of Object.entries(tries)) {
  try {
    await attempt();
    said[name] = "done";
  } catch (error) {
    said[name] = error.name;
  }
}
const root = (() => { try { return [...Deno.readDirSync("/")].map((e) => e.name).sort(); }
  catch { return null; } })();
console.log(JSON.stringify({ said, root, host: Deno.hostname(), uid: Deno.uid() }));
"""


def sandbox_config(runtime: Path | None = None, *, max_rss_mib: int = 512) -> SandboxConfig:
    """Build the configuration of Deno with the executor's runtime, or another."""
    settings = ExecutorSettings()
    return SandboxConfig(
        deno=Path(settings.executor_deno).resolve(),
        runtime=(runtime or settings.executor_runtime).resolve(),
        max_message_bytes=2**22,
        max_heap_mib=128,
        resources=Resources(max_rss_mib),
    )


async def walled_command(name: str, *, max_rss_mib: int = 512) -> DenoCommand:
    """Build the command inside walls of one kind; skip the test where this machine has none."""
    try:
        command = await BUILDS[name](sandbox_config(max_rss_mib=max_rss_mib))
        if name != "none":
            await verify_walls(command)
    except WallsUnavailable as error:
        pytest.skip(f"no {name} here: {error}")
    return command


async def attempted(command: DenoCommand, runtime: Path, facts: list[object]) -> dict[str, object]:
    """Return the results of a program with every permission of Deno, inside the same walls."""
    (runtime / "host.js").write_text(ATTEMPTS, encoding="utf-8")
    (runtime / "imports.json").write_text("{}", encoding="utf-8")
    at = command.argv.index("run")
    argv = [*command.argv[: at + 1], "--allow-all", *command.argv[at + 1 :]]
    child = await command.launch(argv, {**ENVIRONMENT, "TZ": json.dumps(facts)})
    try:
        async with asyncio.timeout(PATIENCE_S):
            said = await child.stdout.readline()
            assert said, await child.stderr.read()
            return json.loads(said)
    finally:
        await child.close(5)


def bare_runtime(folder: Path) -> Path:
    """Build a runtime whose Worker keeps every global, does not freeze the language, and has Node's
    modules, which do not load where it is frozen."""
    runtime = folder / "runtime"
    shutil.copytree(ExecutorSettings().executor_runtime, runtime)
    reduce = runtime / "worker/globals.ts"
    text = reduce.read_text(encoding="utf-8")
    for ours, bare in (("!KEPT.includes(name)", "false"), ("  freezeIntrinsics(values);\n", "")):
        assert text.count(ours) == 1
        text = text.replace(ours, bare)
    reduce.write_text(text, encoding="utf-8")
    (runtime / "imports.json").write_text("{}", encoding="utf-8")
    return runtime


def command_lines() -> list[str]:
    """Return the command line of every process, its words separated by NULs."""
    lines: list[str] = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            lines.append(path.read_text(encoding="utf-8", errors="replace"))
    return lines


RESOURCES = Resources(max_rss_mib=256, runs=100)
NEXT = """const seen = [typeof c, typeof [].map, [1].concat(2).length];
return [...seen, await mcp.api.a({ n: 2 })];"""
SEEN = ["undefined", "function", 2, "two"]

NOW = "mcp.api.now({});"
"""Reports that the code after a program's end is running."""


def later(tried: str) -> str:
    """Build a program that returns and then runs more code."""
    return f"setTimeout(() => {{ {tried} }}, 0); return 0;"


SOON = f"setTimeout(() => {NOW[:-1]}, 100); return 0;"


async def bare_command(folder: Path) -> DenoCommand:
    """Build the command of a process without walls whose Worker keeps every global."""
    command = await unwalled_command(sandbox_config(bare_runtime(folder)))
    return replace(command, resources=RESOURCES, stop_timeout_s=10)


@asynccontextmanager
async def started(command: DenoCommand) -> AsyncGenerator[DenoSandbox]:
    sandbox = await DenoSandbox.start(command)
    try:
        async with asyncio.timeout(2 * PATIENCE_S):
            yield sandbox
    finally:
        await sandbox.close()


async def value_of(sandbox: DenoSandbox, code: str) -> JsonValue:
    """Run a program and return its value; its calls are answered with "two"."""
    await sandbox.run(Program(code=code, args={}, seed="0" * 32, now=0))
    calls = 0
    while not isinstance(message := await sandbox.receive(), Returned):
        assert isinstance(message, CallMade | Noted), message
        if isinstance(message, CallMade):
            assert (message.id, message.tool) == (calls, "api:a")
            sandbox.answer(Answer(id=calls, ok=True, value="two", now=0))
            calls += 1
    return message.value


async def reused(sandbox: DenoSandbox, code: str) -> bool:
    """Run a program and the code after its end; return whether the process can be used again."""
    try:
        assert await value_of(sandbox, code) == 0
        while NOW[:-2] in code and not isinstance(await sandbox.receive(), CallMade):
            pass
    except SandboxBroken:
        return False
    sandbox.finish()
    return await sandbox.renew()
