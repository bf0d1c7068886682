"""Sandboxes inside walls of one kind, and what is tried from there."""

import asyncio
import json
import shutil
from contextlib import suppress
from pathlib import Path

import pytest

from pml_executor.adapters.deno_sandbox import DenoCommand
from pml_executor.adapters.walls import (
    Build,
    Site,
    Unfit,
    in_bubblewrap,
    in_the_open,
    prove,
    under_a_filter,
    under_landlock,
)
from pml_executor.domain.resources import Resources
from pml_executor.domain.walls import ENVIRONMENT
from pml_executor.settings import ExecutorSettings

BUILDS: dict[str, Build] = {
    "bubblewrap": in_bubblewrap,
    "landlock": under_landlock,
    "seccomp": under_a_filter,
    "none": in_the_open,
}
ATTEMPTS = """
const [port, parent, secret, written] = JSON.parse(Deno.env.get("TZ"));
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


def site(runtime: Path | None = None, *, max_rss_mib: int = 512) -> Site:
    """Deno with the executor's runtime, or another."""
    settings = ExecutorSettings()
    return Site(
        deno=Path(settings.executor_deno).resolve(),
        runtime=(runtime or settings.executor_runtime).resolve(),
        max_message_bytes=2**22,
        max_heap_mib=128,
        resources=Resources(max_rss_mib),
    )


async def standing(name: str, *, max_rss_mib: int = 512) -> DenoCommand:
    """Walls of one kind; skips where this machine has none."""
    try:
        command = await BUILDS[name](site(max_rss_mib=max_rss_mib))
        if name != "none":
            await prove(command)
    except Unfit as error:
        pytest.skip(f"no {name} here: {error}")
    return command


async def attempted(command: DenoCommand, runtime: Path, facts: list[object]) -> dict[str, object]:
    """What a program with every permission of Deno's has to say from inside the same walls."""
    (runtime / "host.js").write_text(ATTEMPTS, encoding="utf-8")
    (runtime / "imports.json").write_text("{}", encoding="utf-8")
    at = command.argv.index("run")
    argv = [*command.argv[: at + 1], "--allow-all", *command.argv[at + 1 :]]
    child = await command.launch(argv, {**ENVIRONMENT, "TZ": json.dumps(facts)})
    try:
        async with asyncio.timeout(20):
            said = await child.stdout.readline()
            assert said, await child.stderr.read()
            return json.loads(said)
    finally:
        await child.close(5)


def bare_runtime(folder: Path) -> Path:
    """A runtime whose Worker keeps every global, leaves the language as it is, and finds Node's
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
    """Of every process, its words apart by zeros."""
    lines: list[str] = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            lines.append(path.read_text(encoding="utf-8", errors="replace"))
    return lines
