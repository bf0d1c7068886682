"""Process of the gateway; with arguments, `migrate`, `provision` (the streams of all services) or a
command on an `mcpServers` file."""

import os
import sys


def main() -> None:
    """Run what the arguments ask for; each way imports only what it needs."""
    if sys.argv[1:] == ["migrate"]:
        from pml_common.service import run_migrations
        from pml_common.settings_at_start import read_settings
        from pml_gateway.settings import GatewaySettings

        run_migrations("gateway", read_settings("gateway", GatewaySettings))
        return
    if sys.argv[1:] == ["provision"]:
        from pml_common.service import ServiceSettings, run_provisioning
        from pml_common.settings_at_start import read_settings

        run_provisioning(read_settings("gateway", ServiceSettings))
        return
    if len(sys.argv) > 1:
        from pml_gateway.entrypoints.commands.program import run_command

        raise SystemExit(run_command(sys.argv[1:], dict(os.environ)))

    from pml_common.service import run_service
    from pml_common.settings_at_start import read_settings
    from pml_gateway.app import serve
    from pml_gateway.settings import GatewaySettings

    run_service("gateway", read_settings("gateway", GatewaySettings), serve)


if __name__ == "__main__":
    main()
