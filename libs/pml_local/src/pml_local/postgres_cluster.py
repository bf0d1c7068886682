"""Creation of a Postgres cluster, and clean-up of what a killed server left in one."""

import asyncio
import shutil
import signal
from dataclasses import replace
from pathlib import Path

import psutil

from pml_local.ports import LOOPBACK
from pml_local.process import Command, run_to_end, terminate_all

ROLE = "pml"
"""The one role that may log in; also the name of its database."""
ACCESS = f"host all {ROLE} {LOOPBACK}/32 scram-sha-256\n"
SETUP = 2
"""Number of the set-up below; a cluster with an older one is brought up to date at its start."""
SETUP_SECONDS = 60.0
LEFTOVER_SECONDS = 10.0


async def create_cluster(
    data: Path, programs: Path, password: str, template: Command, *, sync: bool
) -> None:
    """Create it under a temporary name and rename it when complete: a partial one is never used.

    `template` gives the programs' output and account; `password` is the role's.
    """
    aside = data.with_name(f"{data.name}.new")
    await asyncio.to_thread(shutil.rmtree, aside, ignore_errors=True)
    initdb = [
        *(str(programs / "initdb"), "--pgdata", str(aside), "--username=postgres"),
        *("--auth=reject", "--encoding=UTF8", "--locale-provider=builtin", "--locale=C.UTF-8"),
        *(() if sync else ("--no-sync",)),
    ]
    await run_to_end(replace(template, argv=initdb), within=SETUP_SECONDS)
    (aside / "pg_hba.conf").write_text(ACCESS)
    for database, sql in _setup(password):
        single = [str(programs / "postgres"), "--single", "-D", str(aside), database]
        await run_to_end(replace(template, argv=single), sql, within=SETUP_SECONDS)
    aside.rename(data)
    _setup_file(data).write_text(f"{SETUP}\n")


async def update_cluster(data: Path, programs: Path, template: Command) -> None:
    """Bring a stopped cluster of an earlier release up to date; `template` as for
    `create_cluster`."""
    done = _setup_file(data)
    if done.exists() and done.read_text().strip() == str(SETUP):
        return
    single = [str(programs / "postgres"), "--single", "-D", str(data), "postgres"]
    sql = f"ALTER ROLE {ROLE} CREATEROLE;\n"
    await run_to_end(replace(template, argv=single), sql, within=SETUP_SECONDS)
    done.write_text(f"{SETUP}\n")


def _setup_file(data: Path) -> Path:
    """Return the file beside a cluster that says how it was set up."""
    return data.with_name(f"{data.name}.setup")


def _setup(password: str) -> list[tuple[str, str]]:
    """SQL per database for the single-user server, which takes one statement per line. The role
    may make roles: services have some of their own, without ownership."""
    return [
        ("template1", "CREATE EXTENSION vector;\n"),
        (
            "postgres",
            f"CREATE ROLE {ROLE} LOGIN CREATEDB CREATEROLE PASSWORD '{password}';\n"
            f"CREATE DATABASE {ROLE} OWNER {ROLE};\n",
        ),
    ]


def clear_leftover(data: Path) -> None:
    """End a server that outlived its supervisor; remove a pid file that would mislead Postgres.

    Such a file names a pid that now belongs to another process, or a zombie. A file that names no
    process is left to Postgres, which recovers from it. The caller holds the data folder's lock, so
    no living supervisor owns the server. Blocks: call it in a thread.
    """
    file = data / "postmaster.pid"
    try:
        process = psutil.Process(int(file.read_text().split("\n", 1)[0]))
        if str(data) in process.cmdline():
            terminate_all([process], signal.SIGINT, LEFTOVER_SECONDS)
        else:
            file.unlink(missing_ok=True)
    except psutil.ZombieProcess:
        file.unlink(missing_ok=True)
    except (FileNotFoundError, ValueError, psutil.NoSuchProcess):
        return
