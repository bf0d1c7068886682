"""Rendering of a stack's events."""

from pml_local.events import (
    Event,
    PartExited,
    PartReady,
    PartRestarting,
    PartStalled,
    PartStarting,
    PartStopped,
    StackReady,
    StackStopping,
    WaitingForMcpServers,
)


def event_line(event: Event) -> str:
    """One line; empty for events of no interest to a person."""
    match event:
        case PartStarting():
            return f"{event.name}: starting"
        case PartReady():
            return f"{event.name}: ready after {event.seconds:.1f} s (port {event.port})"
        case PartExited():
            return f"{event.name}: exited unexpectedly (code {event.code}); see {event.log}"
        case PartRestarting():
            return f"{event.name}: restarting in {event.delay:.1f} s ({_why(event)})"
        case PartStalled():
            return f"{event.name}: stopped for a restart: {event.reason}"
        case PartStopped():
            return f"{event.name}: stopped"
        case WaitingForMcpServers():
            return f"waiting for MCP servers: {', '.join(event.names)}"
        case StackReady():
            return f"ready after {event.seconds:.1f} s at {event.url}"
        case StackStopping():
            return "stopping"
        case _:
            return "stopped"


def _why(event: PartRestarting) -> str:
    if event.failures < 2:
        return event.reason
    return f"{event.reason}; {event.failures} failures in a row"
