"""Sandbox processes that run several programs in a row."""

from dataclasses import replace

from pml_executor.adapters.deno_command import DenoCommand
from pml_executor.adapters.deno_sandbox import DenoSandbox
from pml_executor.app import sandbox_command
from pml_executor.domain.protocol import Program
from pml_executor.settings import ExecutorSettings

_TRIES = 5


def program(code: str) -> Program:
    """An unanalysed program."""
    return Program(code=code, args={}, seed="0" * 32, now=0, past=0)


async def patient_command() -> DenoCommand:
    """Processes with realms that may be slow to be renewed."""
    settings = ExecutorSettings(executor_pool_mode="per_scope_realm")
    return replace(await sandbox_command(settings), stop_timeout_s=30.0)


async def renewed(sandbox: DenoSandbox, command: DenoCommand, *, realm: bool) -> DenoSandbox:
    """Return a process for another run: this one, whose run was received, or another. One whose own
    threads start late, as on a busy machine, is not used again."""
    for _ in range(_TRIES):
        sandbox.finish()
        if await sandbox.renew(realm=realm):
            return sandbox
        await sandbox.close()
        sandbox = await DenoSandbox.start(command)
        await sandbox.run(program("return 0;"))  # a process's first run has a Worker
        await sandbox.receive()
    await sandbox.close()
    raise AssertionError(f"none of {_TRIES} processes was used again")
