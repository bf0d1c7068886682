"""`pml bus`: the streams on the NATS servers."""

from pathlib import Path
from typing import Literal

from pml_cli.command_line import Group
from pml_cli.options import AS_JSON, HOME, flag, number, one_of, option

GROUP = Group()


@GROUP.command(
    option(
        "--replicas",
        "Replicas of each stream; default: unchanged, 1 for a new one.",
        variable="PML_STREAM_REPLICAS",
        **number(int, 1, 5),
    ),
    option(
        "--storage",
        "Storage of each stream.",
        variable="PML_STREAM_STORAGE",
        default="file",
        **one_of("file", "memory"),
    ),
    option(
        "--nats-url",
        "The operator's URL; default: the local stack's.",
        variable="PML_NATS_URL",
    ),
    flag("--dry-run", "Only show what would change."),
    HOME,
    AS_JSON,
)
def provision(
    replicas: int | None,
    storage: Literal["file", "memory"],
    nats_url: str | None,
    dry_run: bool,
    home: Path | None,
    as_json: bool,
) -> int:
    """Create and update streams, buckets and consumers as configured; stored data is kept.
    Exit code 1: incomplete."""
    from pml_cli.commands import provisioning
    from pml_cli.output import Output
    from pml_common.bus.provision import Plan
    from pml_common.bus.streams import StreamSettings
    from pml_local.folder import default_home

    url = nats_url or provisioning.operator_url(home or default_home())
    wanted = StreamSettings(replicas or 1, storage)
    plan = Plan(wanted, may_lower=replicas is not None, dry_run=dry_run)
    return provisioning.provision(Output(as_json=as_json), url, plan)
