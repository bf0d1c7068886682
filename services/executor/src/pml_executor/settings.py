"""Settings of the executor, read from the environment (`PML_…`)."""

from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Literal

from deno import find_deno_bin
from pydantic import Field

from pml_common.service import ServiceSettings
from pml_executor.domain.limits import RunLimits
from pml_executor.domain.resources import Resources
from pml_executor.domain.walls import Wanted

PoolMode = Literal["single_use", "per_scope", "per_scope_realm"]

_RUNTIME = Path(str(files("pml_executor") / "runtime"))


class ExecutorSettings(ServiceSettings):
    """Sizes in MiB, times in seconds."""

    executor_deno: str = Field(default_factory=find_deno_bin, description="path of the Deno binary")
    executor_runtime: Path = Field(default=_RUNTIME, description="folder that holds host.js")
    executor_pool_size: int = Field(default=2, ge=0, description="warm processes kept ready")
    executor_max_processes: int = Field(
        default=10, ge=1, description="at most, and so many runs at a time"
    )
    executor_pool_mode: PoolMode = Field(
        default="per_scope_realm",
        description="whether a process may run more than one program, and where in it",
    )
    executor_pool_idle_s: float = Field(
        default=60.0, gt=0, description="how long a reused process waits for its scope"
    )
    executor_pool_max_runs: int = Field(
        default=100, ge=1, description="per_scope: runs after which a process is replaced"
    )
    executor_pool_max_realms: int = Field(
        default=500, ge=1, description="per_scope_realm: runs after which a process is replaced"
    )
    executor_sandbox_patience_s: float = Field(default=15.0, gt=0)
    executor_max_heap_mib: int = Field(default=128, ge=16)
    executor_walls: Wanted = Field(
        default="best_effort", description="walls required around a process before it starts"
    )
    executor_max_rss_mib: int = Field(
        default=512, ge=128, description="resident memory of a process, buffers included"
    )
    executor_max_cpu_s: int = Field(
        default=3600, ge=1, description="processor time of a process, whatever its deadline"
    )
    executor_max_tool_calls: int = Field(default=1000, ge=0)
    executor_max_message_mib: int = Field(default=4, ge=1)
    executor_max_journal_mib: int = Field(default=32, ge=1)
    executor_journal_flush_s: float = Field(
        default=0.075, gt=0, description="time after which an entry is stored that no call awaits"
    )
    executor_max_outage_s: float = Field(
        default=600.0,
        ge=0,
        description="time without NATS that does not count towards a run's timeout",
    )

    @property
    def limits(self) -> RunLimits:
        """The bounds of every run."""
        return RunLimits(
            max_tool_calls=self.executor_max_tool_calls,
            max_message_bytes=self.executor_max_message_mib * 2**20,
            max_journal_bytes=self.executor_max_journal_mib * 2**20,
            max_outage_s=self.executor_max_outage_s,
        )

    @property
    def resources(self) -> Resources:
        """Resource limits of one process."""
        bounds = Resources(self.executor_max_rss_mib, self.executor_max_cpu_s)
        match self.executor_pool_mode:
            case "single_use":
                return bounds
            case "per_scope":
                return replace(bounds, runs=self.executor_pool_max_runs)
            case "per_scope_realm":  # a realm that is over stays in the heap until V8 collects it
                return replace(bounds, runs=self.executor_pool_max_realms, max_growth=1 / 2)
