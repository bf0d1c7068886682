"""Creation of a Postgres cluster, and clean-up of what a killed server left in one."""

import asyncio
import shutil
import signal
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import psutil

from pml_common.storage.roles import roles_of
from pml_local.ports import LOOPBACK
from pml_local.process import Command, run_to_end, terminate_all

OWNER = "pml"
"""The owner of the database and of every schema in it; also the database's name."""
ROLES = {schema: roles_of(OWNER, schema) for schema in ("gateway", "learner", "registry")}
"""The roles of each schema, with the user of its service, which owns nothing."""
SETUP = 3
"""Number of the set-up below; a cluster with an older one is brought up to date at its start."""
SETUP_SECONDS = 60.0
LEFTOVER_SECONDS = 10.0


@dataclass(frozen=True)
class Passwords:
    """Passwords of the users that may log in: of the owner, and of each service's user by schema.
    `further`: SQL that the superuser runs besides, a statement a line, for a test's server."""

    owner: str
    services: Mapping[str, str]
    further: str = ""


async def create_cluster(
    data: Path, programs: Path, passwords: Passwords, template: Command, *, sync: bool
) -> None:
    """Create it under a temporary name and rename it when complete: a partial one is never used.

    `template` gives the programs' output and account.
    """
    aside = data.with_name(f"{data.name}.new")
    await asyncio.to_thread(shutil.rmtree, aside, ignore_errors=True)
    initdb = [
        *(str(programs / "initdb"), "--pgdata", str(aside), "--username=postgres"),
        *("--auth=reject", "--encoding=UTF8", "--locale-provider=builtin", "--locale=C.UTF-8"),
        *(() if sync else ("--no-sync",)),
    ]
    await run_to_end(replace(template, argv=initdb), within=SETUP_SECONDS)
    for database, sql in _created(passwords):
        await _alone(aside, programs, database, sql, template)
    _admit(aside)
    aside.rename(data)
    _setup_file(data).write_text(f"{SETUP}\n")


async def update_cluster(
    data: Path, programs: Path, passwords: Passwords, template: Command
) -> None:
    """Bring a stopped cluster of an earlier release up to date; parameters as for
    `create_cluster`."""
    done = _setup_file(data)
    if done.exists() and done.read_text().strip() == str(SETUP):
        return
    await _alone(data, programs, "postgres", _users(passwords), template)
    _admit(data)
    done.write_text(f"{SETUP}\n")


async def _alone(data: Path, programs: Path, database: str, sql: str, template: Command) -> None:
    """Run statements by the single-user server, which takes one on each line; it ends at the first
    that fails, and logs none: they contain passwords."""
    options = ("-c", "exit_on_error=on", "-c", "log_min_error_statement=panic")
    single = [str(programs / "postgres"), "--single", "-D", str(data), *options, database]
    await run_to_end(replace(template, argv=single), sql, within=SETUP_SECONDS)


def _setup_file(data: Path) -> Path:
    """Return the file beside a cluster that says how it was set up."""
    return data.with_name(f"{data.name}.setup")


def _admit(data: Path) -> None:
    """Let the owner and the services' users in, from this machine, by password."""
    names = ",".join((OWNER, *(roles.login for roles in ROLES.values())))
    access = f"host all {names} {LOOPBACK}/32 scram-sha-256\n"
    (data / "pg_hba.conf").write_text(access)


def _created(passwords: Passwords) -> list[tuple[str, str]]:
    """SQL per database of a new cluster."""
    database = f"CREATE DATABASE {OWNER} OWNER {OWNER};\n"
    return [("template1", "CREATE EXTENSION vector;\n"), ("postgres", _users(passwords) + database)]


def _users(passwords: Passwords) -> str:
    """SQL that makes the users and roles, or sets them right. The owner may take on the roles of
    queries, too, as services of earlier releases do, which log in as the owner."""
    lines = [_role(OWNER, "LOGIN NOCREATEDB NOCREATEROLE", passwords.owner)]
    for schema, roles in ROLES.items():
        lines.extend(_role(role, "NOLOGIN") for role in roles.all)
        lines.append(_role(roles.login, "LOGIN", passwords.services[schema]))
        granted = f"GRANT {', '.join(roles.all)} TO {roles.login}, {OWNER}"
        lines.append(f"{granted} WITH INHERIT FALSE, SET TRUE;\n")
    return "".join((*lines, passwords.further))


def _role(name: str, rights: str, password: str | None = None) -> str:
    missing = f"NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{name}')"
    alter = f"ALTER ROLE {name} {rights}" + (f" PASSWORD '{password}'" if password else "")
    return f"DO $$ BEGIN IF {missing} THEN CREATE ROLE {name}; END IF; {alter}; END $$;\n"


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
