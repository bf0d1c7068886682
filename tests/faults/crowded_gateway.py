"""The real gateway, except that each request names its principal: `X-Principal: ana`.

`PML_NATS_URL=… python -m tests.faults.crowded_gateway`
"""

from collections.abc import Mapping
from unittest.mock import patch

from pml_common.service import run_service
from pml_gateway import app
from pml_gateway.adapters.local_callers import LocalCallers
from pml_gateway.ports import Caller
from pml_gateway.settings import GatewaySettings


class NamedCallers(LocalCallers):
    """Authentication by a header."""

    async def identify(self, headers: Mapping[str, str]) -> Caller:
        """Return the principal in the header; the local one without it."""
        local = await super().identify(headers)
        return Caller(local.scope, headers.get("x-principal", local.principal))


if __name__ == "__main__":
    with patch.object(app, "LocalCallers", NamedCallers):
        run_service("gateway", GatewaySettings(), app.serve)
