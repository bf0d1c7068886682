"""Why a sandbox process ended by itself, as its run's error."""

from dataclasses import dataclass

from pml_common.contracts.error import ErrorKind

_KILLED = -9
_OUT_OF_PROCESSOR_TIME = -24
_LAST_WORDS = 500


@dataclass(frozen=True)
class Death:
    """`status` is negative for a signal; `last_words` is the end of its stderr; `outgrown`
    whether it was killed here for its memory."""

    status: int
    last_words: str = ""
    outgrown: bool = False


def cause_of(death: Death, *, max_heap_mib: int, max_rss_mib: int) -> tuple[ErrorKind, str]:
    """The kind of error, and what to tell."""
    if death.outgrown:
        text = f"the run took more than its {max_rss_mib} MiB of memory, with buffers and all"
        return "memory_limit", text
    if "out of memory" in death.last_words:
        return "memory_limit", f"the program used more than its {max_heap_mib} MiB of memory"
    if death.status == _OUT_OF_PROCESSOR_TIME:
        return "timeout", "the run used all the processor time that one process may have"
    if death.status == _KILLED:
        return "internal", "the sandbox process was killed, as a system short of memory does"
    text = f"the sandbox process ended with status {death.status}"
    return "internal", f"{text}: {death.last_words[:_LAST_WORDS]}" if death.last_words else text
