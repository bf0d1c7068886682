"""Handler of `capability-changed`."""

from pml_analyzer.ports import Capabilities
from pml_common.contracts.registry import CapabilityChanged


async def on_capability_changed(event: CapabilityChanged, capabilities: Capabilities) -> None:
    """Invalidate the scope's cached capabilities; new statistics invalidate nothing."""
    if event.change in ("created", "named"):
        capabilities.invalidate(event.scope)
