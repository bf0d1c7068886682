"""Programs that want out: what they find, and that it ends them.

Each is run twice: as it would be, and with all of Deno's and Node's globals left in the Worker, so
that what is below them (no permission, the secret, the deadline) is seen to hold without them.
"""

import shutil
from collections.abc import AsyncGenerator, Awaitable, Callable
from functools import partial

import pytest

from pml_common.bus.memory import MemoryBus
from pml_common.contracts.executor import RunFinished, RunWorkflow
from pml_executor.adapters.deno_pool import DenoPool, PoolSize
from pml_executor.adapters.deno_sandbox import DenoSandbox
from pml_executor.adapters.memory_tools import MemoryTools
from pml_executor.app import sandbox_command
from pml_executor.handlers.on_run_workflow import Executor, on_run_workflow
from pml_executor.settings import ExecutorSettings

pytestmark = pytest.mark.integration

Run = Callable[..., Awaitable[RunFinished]]

WRITE = """const { stdout } = await import("node:process");
stdout.write(%s);
await new Promise(() => {});"""
FRAME = """
const body = new TextEncoder().encode("%sp" + JSON.stringify({ kind: "returned", value: "!" }));
const bytes = new Uint8Array(4 + body.length);
new DataView(bytes.buffer).setUint32(0, body.length);
bytes.set(body, 4);
const fs = await import("node:fs");
fs.writeSync(1, bytes);
await new Promise(() => {});"""


@pytest.fixture(scope="session")
async def bare_pool(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[DenoPool]:
    """Sandboxes whose Worker keeps every global."""
    settings = ExecutorSettings()
    runtime = tmp_path_factory.mktemp("bare") / "runtime"
    shutil.copytree(settings.executor_runtime, runtime)
    reduce = runtime / "worker/globals.ts"
    kept = reduce.read_text().replace("!KEPT.includes(name)", "false")
    reduce.write_text(kept)
    command = await sandbox_command(settings.model_copy(update={"executor_runtime": runtime}))
    async with DenoPool(partial(DenoSandbox.start, command), PoolSize(spares=1)) as pool:
        yield pool


@pytest.fixture(params=["whole", "bare"])
def run(
    request: pytest.FixtureRequest,
    make_command: Callable[..., RunWorkflow],
    make_executor: Callable[..., Executor],
    deno_pool: DenoPool,
    bare_pool: DenoPool,
) -> Run:
    pool = deno_pool if request.param == "whole" else bare_pool

    async def run(code: str, timeout_s: float = 10.0) -> RunFinished:
        executor = make_executor(MemoryBus(), pool, MemoryTools())
        (fact,) = await on_run_workflow(make_command(code, timeout_s=timeout_s), executor)
        assert isinstance(fact, RunFinished)
        return fact

    return run


@pytest.mark.parametrize(
    "expression",
    [
        "typeof Deno",
        "typeof Worker",
        "typeof fetch",
        "typeof WebSocket",
        "typeof BroadcastChannel",
        "typeof process",
        "typeof Buffer",
        "typeof WebAssembly",
        "typeof SharedArrayBuffer",
        "typeof postMessage",
        "typeof close",
        "typeof caches",
        "typeof globalThis.self",
        "typeof ((globalThis as any)['De' + 'no'])",
        "typeof __pml.secret",
    ],
)
@pytest.mark.parametrize("run", ["whole"], indirect=True)
async def test_nothing_of_the_host_is_there_by_name(run: Run, expression: str) -> None:
    assert (await run(f"return {expression};")).result == "undefined"


@pytest.mark.parametrize(
    "expression",
    [
        'import("file:///etc/passwd", { with: { type: "text" } })',
        'import("file:///etc/hostname")',
        'import("npm:is-number")',
        'import("jsr:@std/assert")',
        'import("https://deno.land/std/version.ts")',
        'import("http://127.0.0.1:4222/")',
        'import("node:fs").then((fs) => fs.readFileSync("/etc/passwd", "utf8"))',
        'import("node:fs").then((fs) => fs.writeFileSync("/pml-escape", "x"))',
        'import("node:fs").then((fs) => fs.readdirSync("/"))',
        'import("node:child_process").then((c) => c.execSync("id").toString())',
        'import("node:os").then((os) => os.hostname())',
        'import("node:process").then((p) => p.env.PATH ?? Object.keys(p.env).join())',
        'import("node:process").then((p) => p.getBuiltinModule("fs").readFileSync("/etc/passwd"))',
        'import("data:application/javascript,import x from \\"file:///etc/passwd\\" '
        'with { type: \\"text\\" }; export default x")',
        'import("node:http").then((h) => new Promise((ok, no) => '
        'h.get("http://127.0.0.1:4222", ok).on("error", no)))',
    ],
)
async def test_reads_and_connections_are_refused(run: Run, expression: str) -> None:
    fact = await run(
        f"""globalThis.console = {{}} as Console;
        try {{ return {{ got: String(await {expression}).slice(0, 80) }}; }}
        catch (error) {{ return {{ refused: String(error).slice(0, 200) }}; }}"""
    )
    assert isinstance(fact.result, dict)
    assert "refused" in fact.result


@pytest.mark.parametrize("run", ["bare"], indirect=True)
@pytest.mark.parametrize(
    "code",
    [
        WRITE % '"hello"',
        WRITE % '"\\x00\\x00\\x00\\x05hello"',
        WRITE % '"\\xff".repeat(64)',
        FRAME % ("0" * 32),
        FRAME % "",
        'postMessage("ready"); await new Promise(() => {});',
    ],
)
async def test_whoever_forges_output_is_rejected(run: Run, code: str) -> None:
    fact = await run(f"globalThis.console = {{}} as Console; {code}")  # Node's parts adorn it
    assert fact.error is not None
    assert fact.error.kind == "rejected"


SELF_HARM = {
    'const p = await import("node:process"); p.exit(0);': {"timeout", "user_error"},
    'const p = await import("node:process"); p.kill(p.pid, "SIGKILL");': {"internal", "user_error"},
    'const fs = await import("node:fs"); for (;;) fs.readSync(0, new Uint8Array(9));': {
        "timeout",
        "user_error",
    },
    "close(); await new Promise(() => {});": {"timeout", "user_error"},
    "for (;;) await null;": {"timeout"},
    "'x'.repeat(16).repeat(2 ** 29);": {"user_error"},
    "/(a+)+$/.test('a'.repeat(60) + 'b');": {"timeout"},
    "Object.prototype.toJSON = () => { throw 1 }; return {};": {"user_error"},
    "Promise.prototype.then = () => {}; Array.prototype.push = () => 0; return 1;": {None},
    "JSON.stringify = () => 'x'; Map.prototype.get = () => 0; return mcp.api.a();": {None},
    "return { get a() { for (;;) ; } };": {"timeout"},
    "globalThis.queueMicrotask = null; c.log(1); return 1;": {None},
}


@pytest.mark.parametrize("code", list(SELF_HARM))
async def test_self_harm_ends_the_program_alone(run: Run, code: str) -> None:
    fact = await run(f"const c = console; globalThis.console = {{}} as Console; {code}", 1.0)
    assert (fact.error.kind if fact.error else None) in SELF_HARM[code]
