"""A capability changed: what was read of its scope's may no longer hold."""

from pml_analyzer.ports import Capabilities
from pml_common.contracts.registry import CapabilityChanged


async def on_capability_changed(event: CapabilityChanged, capabilities: Capabilities) -> None:
    """Forget what the scope's names mean; new statistics change no meaning."""
    if event.change in ("created", "named"):
        capabilities.drop(event.scope)
