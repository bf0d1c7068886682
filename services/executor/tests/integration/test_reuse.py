"""One process runs several programs of a scope: nothing that one leaves behind reaches another."""

import os
import resource
import sys
from dataclasses import replace

import pytest

from pml_executor.adapters.deno_command import DenoCommand
from pml_executor.adapters.procfs import read_proc, workers_and_snapshot
from pml_executor.domain.resources import Resources, cpu_seconds
from pml_executor.ports import SandboxBroken
from services.executor.tests.support.sandboxes import (
    NEXT,
    NOW,
    RESOURCES,
    SEEN,
    bare_command,
    later,
    reused,
    started,
    value_of,
    walled_command,
)

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(sys.platform != "linux", reason="elsewhere no process is used again"),
]

HARMLESS = {
    "globals": "globalThis.c = 1; try { Array.prototype.concat = () => []; } catch {} return 0;",
    "microtasks": "(async () => { for (let i = 0; i < 500; i++) await i; console.log('late'); })();"
    " return 0;",
    "timers": "setInterval(() => console.log('late'), 1); return 0;",
    "late calls": "setTimeout(() => mcp.api.late({}), 0); await 0; setTimeout(() =>"
    " { for (let i = 0; i < 50; i++) mcp.api.late({ i }); }, 0); return 0;",
    "unread answers": "for (let i = 0; i < 5; i++) mcp.api.a({ i }); return 0;",
    "promises for ever": "globalThis.c = new Promise(() => {}); c.then(() => 1); return 0;",
    "late rejections": "setTimeout(() => Promise.reject(new Error('late')), 0); return 0;",
    "late errors": "setTimeout(() => { throw new Error('late'); }, 1); return 0;",
}
WITH_ALL_GLOBALS = {
    "a channel": "const b = new BroadcastChannel('x'); globalThis.c = b; b.postMessage('left');"
    " setInterval(() => b.postMessage('left'), 1); return 0;",
    "waits without a thread": "Atomics.waitAsync(new Int32Array(new SharedArrayBuffer(8)), 0, 0);"
    " return 0;",
    "V8's flags": "(await import('node:v8')).setFlagsFromString('--stack-size=200'); return 0;",
    "an exit code": "Deno.exitCode = 3; return 0;",
    "locks": "navigator.locks.request('c', () => new Promise(() => {})); await 0; return 0;",
}
LISTENS = """const b = new BroadcastChannel('x');
const heard = await new Promise((done) => {
  b.onmessage = (e) => done(e.data);
  setTimeout(() => done('nothing'), 50);
});
const locks = await navigator.locks.query();
return [heard, Deno.exitCode, locks.held.length];"""
FATAL = {
    "a busy loop": later(f"{NOW} for (;;) ;"),
    "a flood of messages": later(f"{NOW} for (;;) console.log('x');"),
    "microtasks without end": "(async () => { for (;;) await 0; })(); return 0;",
    "a slow pattern": later(f"{NOW} /^(a+)+$/.test('a'.repeat(40) + '!');"),
}
FATAL_WITH_ALL_GLOBALS = {
    "a Worker by another name": "const busy = `data:text/javascript,import p from 'node:process';"
    " p.title = 'deno'; postMessage(0); for (;;);`; const w = new Worker(busy, { type: 'module' });"
    " await new Promise((started) => w.onmessage = started); return 0;",
    "a Worker by another name, asleep": "const waits = `data:text/javascript,import p from"
    " 'node:process'; p.title = 'tokio-runtime-w'; postMessage(0);"
    " Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);`;"
    " const w = new Worker(waits, { type: 'module' });"
    " await new Promise((started) => w.onmessage = started); return 0;",
    "a calculation on another thread": "globalThis.console = {}; const { pbkdf2 } = await"
    " import('node:crypto'); pbkdf2('a', 'b', 2e9, 64, 'sha512', () => {}); return 0;",
    "memory that it never touched": "const { port1 } = new MessageChannel(); for (let i = 0; i < 5;"
    " i++) port1.postMessage(new SharedArrayBuffer(2 ** 28)); return 0;",
    "a blocking wait": later(
        f"{NOW} Atomics.wait(new Int32Array(new SharedArrayBuffer(8)), 0, 0);"
    ),
    "text on the process's output": later(f"Deno.stdout.writeSync(new Uint8Array(9)); {NOW}"),
    "words on its errors": "Deno.stderr.writeSync(new TextEncoder().encode('out of memory'));"
    " return 0;",
    "a Worker of its own": "new Worker('data:text/javascript,for(;;);', { type: 'module',"
    " deno: { permissions: 'none' } }); return 0;",
    "a handler for a signal": "Deno.addSignalListener('SIGXCPU', () => {}); return 0;",
    "a message to the host": later(f"postMessage('ready'); {NOW}"),
}


@pytest.fixture(scope="session")
async def bare(tmp_path_factory: pytest.TempPathFactory) -> DenoCommand:
    """A process without walls whose Worker keeps every global."""
    return await bare_command(tmp_path_factory.mktemp("bare"))


@pytest.mark.parametrize("code", HARMLESS.values(), ids=HARMLESS)
@pytest.mark.parametrize("walls", ["bubblewrap", "landlock", "none"])
async def test_the_next_program_finds_nothing_of_the_last(walls: str, code: str) -> None:
    command = replace(await walled_command(walls), resources=RESOURCES, stop_timeout_s=10)
    assert await _is_reused(command, code, (NEXT, SEEN), (NEXT, SEEN))


@pytest.mark.parametrize("code", WITH_ALL_GLOBALS.values(), ids=WITH_ALL_GLOBALS)
async def test_nothing_of_the_process_outlives_a_worker(bare: DenoCommand, code: str) -> None:
    assert await _is_reused(bare, code, (NEXT, SEEN), (LISTENS, ["nothing", 0, 0]))


async def _is_reused(command: DenoCommand, code: str, *finds: tuple[str, object]) -> bool:
    """Whether a process is used again after this program, for others that find what they must. On a
    busy machine a process whose own threads start late is not: then another one is tried."""
    for _ in range(3):
        async with started(command) as sandbox:
            again = await reused(sandbox, code)
            for other, found in finds:
                if not again:
                    break
                assert await value_of(sandbox, other) == found
                sandbox.finish()
                again = await sandbox.renew()
            if again:
                return True
    return False


@pytest.mark.parametrize("code", FATAL.values(), ids=FATAL)
async def test_who_goes_on_after_its_end_is_killed(code: str) -> None:
    async with started(replace(await walled_command("none"), resources=RESOURCES)) as sandbox:
        assert not await reused(sandbox, code)


@pytest.mark.parametrize("code", FATAL_WITH_ALL_GLOBALS.values(), ids=FATAL_WITH_ALL_GLOBALS)
async def test_who_takes_from_the_process_is_killed(bare: DenoCommand, code: str) -> None:
    command = replace(bare, stop_timeout_s=1)
    async with started(command) as sandbox:
        assert not await reused(sandbox, code)


async def test_no_program_makes_or_revokes_what_the_process_keeps_by_name() -> None:
    async with started(replace(await walled_command("none"), resources=RESOURCES)) as sandbox:
        code = "return [typeof URL.createObjectURL, typeof URL.revokeObjectURL];"
        assert await value_of(sandbox, code) == ["undefined", "undefined"]


async def test_a_process_serves_so_many_runs_and_no_more() -> None:
    command = replace(await walled_command("none"), resources=Resources(runs=2), stop_timeout_s=10)
    async with started(command) as sandbox:
        assert await reused(sandbox, "return 0;")
        assert not await reused(sandbox, "return 0;")
        assert not sandbox.finished


async def test_each_run_has_its_own_processor_time() -> None:
    resources = Resources(max_cpu_s=1000, runs=60)
    command = replace(await walled_command("none"), resources=resources, stop_timeout_s=60)
    burn = "for (let i = 0; i < 2e8; i++) Math.sqrt(i); return 0;"
    async with started(command) as sandbox:
        assert cpu_limit_s(sandbox.pid) == 1000
        while (used := cpu_s(sandbox.pid)) <= 1.0:
            assert await reused(sandbox, burn)
        assert await value_of(sandbox, "return 0;") == 0
        assert cpu_limit_s(sandbox.pid) >= used + 1000


async def test_a_run_without_processor_time_left_ends_as_one_without_time() -> None:
    resources = Resources(max_cpu_s=2, runs=60)
    async with started(replace(await walled_command("none"), resources=resources)) as sandbox:
        with pytest.raises(SandboxBroken, match="processor time") as error:
            await value_of(sandbox, "for (;;) ;")
        assert error.value.kind == "timeout"


def cpu_s(pid: int) -> float:
    """Return the processor time that a process has used."""
    return cpu_seconds(read_proc(f"/proc/{pid}/stat"), os.sysconf("SC_CLK_TCK"))


def cpu_limit_s(pid: int) -> int:
    """Return the processor time at which the kernel stops a process."""
    soft, _ = resource.prlimit(pid, resource.RLIMIT_CPU)
    return soft


@pytest.mark.parametrize(
    "code",
    [
        "const kept = new Uint8Array(1.2e8).fill(1); globalThis.c = kept; return 0;",
        "globalThis.c = []; for (let i = 0; i < 1e6; i++) c.push({ i }); return 0;",
    ],
    ids=["buffers", "heap"],
)
async def test_each_run_has_all_of_its_memory(code: str) -> None:
    command = replace(await walled_command("bubblewrap", max_rss_mib=256), resources=RESOURCES)
    async with started(command) as sandbox:
        for _ in range(4):
            assert await value_of(sandbox, code) == 0
            sandbox.finish()
            if not await sandbox.renew():
                break  # the memory it occupies would be missing to the next
        else:
            with pytest.raises(SandboxBroken, match="MiB of memory"):
                await value_of(sandbox, "const k = []; for (;;) k.push(new Array(1e4).fill({}));")


async def test_without_a_look_at_threads_no_process_is_used_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("pml_executor.adapters.deno_sandbox.can_inspect_threads", lambda: False)
    async with started(replace(await walled_command("none"), resources=RESOURCES)) as sandbox:
        assert not await reused(sandbox, "return 0;")


async def test_a_worker_has_a_thread_that_is_known_by_its_name() -> None:
    async with started(await walled_command("none")) as sandbox:
        assert len(workers_and_snapshot(sandbox.pid)[0]) == 1
    assert workers_and_snapshot(sandbox.pid)[0] == frozenset()
