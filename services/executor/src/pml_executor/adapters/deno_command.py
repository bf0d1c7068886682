"""Start command and limits of a sandbox process."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from secrets import token_hex

from pml_executor.adapters.cgroups import Groups
from pml_executor.adapters.launch import Launch, Plain
from pml_executor.adapters.worker_code import WorkerTexts
from pml_executor.domain.protocol import Hello
from pml_executor.domain.realms import HiddenModules, Realms
from pml_executor.domain.resources import Resources
from pml_executor.domain.walls import IMPORT_MAP, NO_WALLS, Walls


async def _nothing() -> WorkerTexts:
    return WorkerTexts()


@dataclass(frozen=True)
class DenoCommand:
    """Command line, timeouts and limits of a process; `worker` returns the code of its Workers.
    Without `realms` it has none; with them `import_map`, the text of the one in `argv`, is replaced
    by one that also contains the process's hidden modules."""

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
    import_map: str = "{}"

    def may_use_realms(self) -> bool:
        """Return whether runs may have realms now."""
        return self.realms is not None and self.realms.usable

    def hidden_modules(self) -> HiddenModules | None:
        """Return those of a new process, with a secret of its own; None without realms."""
        return None if self.realms is None else HiddenModules(token_hex(16))

    def argv_with(self, hidden: HiddenModules | None) -> Sequence[str]:
        """Return the command line of a process with these hidden modules."""
        if hidden is None:
            return self.argv
        names = IMPORT_MAP + hidden.import_map(self.import_map)
        return [names if word.startswith(IMPORT_MAP) else word for word in self.argv]

    def hello(self, secret: str, texts: WorkerTexts, hidden: HiddenModules | None = None) -> Hello:
        """Build the first message to a process."""
        realm = "" if hidden is None else hidden.hide(texts.realm)
        most = self.max_message_bytes
        return Hello(secret=secret, max_body_bytes=most, worker=texts.worker, realm=realm)
