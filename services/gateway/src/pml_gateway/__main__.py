"""Process of the gateway."""

from pml_common.service import run_service
from pml_gateway.app import serve
from pml_gateway.settings import GatewaySettings

if __name__ == "__main__":
    run_service("gateway", GatewaySettings(), serve)
