"""Start command and limits of a sandbox process."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from pml_executor.adapters.cgroups import Groups
from pml_executor.adapters.launch import Launch, Plain
from pml_executor.adapters.worker_code import WorkerTexts
from pml_executor.domain.protocol import Hello
from pml_executor.domain.realms import Realms
from pml_executor.domain.resources import Resources
from pml_executor.domain.walls import NO_WALLS, Walls


async def _nothing() -> WorkerTexts:
    return WorkerTexts()


@dataclass(frozen=True)
class DenoCommand:
    """Command line, timeouts and limits of a process; `worker` returns the code of its Workers.
    Without `realms` it has none."""

    argv: Sequence[str]
    max_message_bytes: int
    max_heap_mib: int
    worker: Callable[[], Awaitable[WorkerTexts]] = _nothing
    start_timeout_s: float = 10.0
    stop_timeout_s: float = 1.0
    launch: Launch = field(default_factory=Plain)
    walls: Walls = NO_WALLS
    resources: Resources = field(default_factory=Resources)
    groups: Groups | None = None
    realms: Realms | None = None

    def may_use_realms(self) -> bool:
        """Return whether runs may have realms now."""
        return self.realms is not None and self.realms.usable

    def hello(self, secret: str, texts: WorkerTexts) -> Hello:
        """Build the first message to a process."""
        realm = "" if self.realms is None else self.realms.hidden(texts.realm)
        most = self.max_message_bytes
        return Hello(secret=secret, max_body_bytes=most, worker=texts.worker, realm=realm)
