"""Big bodies of the bus's twin."""

from pml_common.bus.memory_broker import MemoryBroker


class MemoryPayloads:
    """The twin's store; see `codec.Payloads`."""

    def __init__(self, broker: MemoryBroker) -> None:
        self._broker = broker

    async def put(self, key: str, data: bytes) -> None:
        """See `codec.Payloads`."""
        self._broker.require(f"store payload {key}")
        self._broker.payloads[key] = data

    async def get(self, key: str) -> bytes | None:
        """See `codec.Payloads`."""
        self._broker.require(f"read payload {key}")
        return self._broker.payloads.get(key)
