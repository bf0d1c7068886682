"""The command that provisions NATS streams and lists the results."""

import asyncio
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from pml_cli.errors import FAILED, UNREACHABLE, USAGE, CommandError
from pml_cli.markup import escape
from pml_cli.output import Output
from pml_common.bus.errors import BusError, BusUnavailable
from pml_common.bus.provision import Plan, Provisioned, provisioner
from pml_local.state import read_state


def operator_url(home: Path) -> str:
    """URL of the local stack's NATS, as the operator. Raises CommandError."""
    state = read_state(home)
    if state is None:
        raise CommandError(
            f"no stack runs on {home}: name the NATS servers with --nats-url or PML_NATS_URL, as "
            "the operator: nats://pml:<password>@<host>:4222",
            USAGE,
        )
    return state.nats_url


def provision(out: Output, url: str, plan: Plan) -> int:
    """Provision and print the results. Raises CommandError when NATS does not answer."""
    with out.busy("provisioning…"):
        done = asyncio.run(_provision(url, plan))
    unfinished = any(each.problem is not None for each in done)
    data = {
        "replicas": plan.wanted.replicas,
        "storage": plan.wanted.storage,
        "dry_run": plan.dry_run,
        "provisioned": [asdict(each) for each in done],
    }
    out.show(data, *_lines(done, dry_run=plan.dry_run))
    return FAILED if unfinished else 0


async def _provision(url: str, plan: Plan) -> list[Provisioned]:
    try:
        async with provisioner(url, plan) as run:
            return await run.provision()
    except BusUnavailable as error:
        message = f"{error}; only the operator may change every stream"
        raise CommandError(message, UNREACHABLE) from error
    except BusError as error:
        raise CommandError(str(error)) from error


def _lines(done: Sequence[Provisioned], *, dry_run: bool) -> list[str]:
    words = {"created": "create", "changed": "change"} if dry_run else {}
    lines: list[str] = []
    for each in done:
        if each.state in ("created", "changed"):
            lines.append(escape(f"{words.get(each.state, each.state)} {each.name}{_changes(each)}"))
        if each.problem is not None:
            lines.append(f"[red]{escape(f'{each.name}: {each.problem}')}[/]")
    unchanged = sum(each.state == "unchanged" for each in done)
    return [*lines, f"{unchanged} of {len(done)} are as configured"]


def _changes(each: Provisioned) -> str:
    changes = [f"{name} {one.was} → {one.wanted}" for name, one in each.changes.items()]
    return f": {', '.join(changes)}" if changes else ""
