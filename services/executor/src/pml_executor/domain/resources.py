"""Resource limits of a process, beyond what V8 counts as its heap."""

from dataclasses import dataclass

_MIB = 2**20
_GIB = 2**30


@dataclass(frozen=True)
class Resources:
    """Limits of one process. `max_rss_mib`: resident memory at which a run ends. `max_cpu_s`:
    processor seconds of one run, in case no executor is left to enforce its deadline. `runs`:
    number of runs that a process may serve, one after the other. `max_growth`: part of
    `max_rss_mib` by which a process may have grown and still serve another."""

    max_rss_mib: int = 512
    max_cpu_s: int = 3600
    runs: int = 1
    max_growth: float = 1 / 8

    @property
    def rlimits(self) -> dict[str, tuple[int, int]]:
        """Soft and hard limits, by their names in `resource`.

        Address space cannot be limited: V8 reserves many GB and uses little. Data can: Deno maps
        some 600 MB of it without touching them. The rest bounds a process between two checks of
        its memory.
        """
        data = 8 * self.max_rss_mib * _MIB + 2 * _GIB
        return {
            "RLIMIT_CORE": (0, 0),
            "RLIMIT_FSIZE": (0, 0),
            "RLIMIT_MEMLOCK": (0, 0),
            "RLIMIT_NOFILE": (256, 256),
            "RLIMIT_DATA": (data, data),
            "RLIMIT_CPU": (self.max_cpu_s, self.runs * self.max_cpu_s + 5),
        }

    def rss_for(self, grown_mib: float) -> float:
        """Return the resident memory at which the next run ends, in a process that has grown by
        `grown_mib` since it was new: each run may take the same amount."""
        return self.max_rss_mib + max(0.0, grown_mib)

    @property
    def max_growth_mib(self) -> float:
        """Growth of resident memory since the start with which a process may serve another run."""
        return self.max_rss_mib * self.max_growth if self.runs > 1 else 0.0

    @property
    def max_data_growth_mib(self) -> float:
        """The same for allocated memory, touched or not: of what RLIMIT_DATA allows, seven times
        the resident memory of a run is left."""
        return float(self.max_rss_mib) if self.runs > 1 else 0.0


def cpu_seconds(stat: str, ticks: int) -> float:
    """Parse the processor time used from the text of /proc/<pid>/stat."""
    fields = stat.rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / ticks


def resident_mib(statm: str, page_bytes: int) -> float:
    """Parse the resident memory from the text of /proc/<pid>/statm."""
    return int(statm.split()[1]) * page_bytes / _MIB


def data_mib(statm: str, page_bytes: int) -> float:
    """Parse the allocated memory, touched or not, from the same text, as RLIMIT_DATA counts it."""
    return int(statm.split()[5]) * page_bytes / _MIB
