"""`pml bus`: the streams on the NATS servers."""

from typing import Annotated, Literal

import typer

from pml_cli.options import AsJson, Home

bus = typer.Typer(no_args_is_help=True, help="Provision the streams on NATS.")


@bus.command("provision")
def bus_provision(
    replicas: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=5,
            envvar="PML_STREAM_REPLICAS",
            help="Replicas of each stream; default: unchanged, 1 for a new one.",
        ),
    ] = None,
    storage: Annotated[
        Literal["file", "memory"],
        typer.Option(envvar="PML_STREAM_STORAGE", help="Storage of each stream."),
    ] = "file",
    nats_url: Annotated[
        str | None,
        typer.Option(envvar="PML_NATS_URL", help="The operator's URL; default: the local stack's."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what would change.")
    ] = False,
    home: Home = None,
    as_json: AsJson = False,
) -> None:
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
    raise typer.Exit(provisioning.provision(Output(as_json=as_json), url, plan))
