"""What a process may take of the machine, beyond what V8 counts as its heap."""

from dataclasses import dataclass

_MIB = 2**20
_GIB = 2**30
_GROWTH = 8


@dataclass(frozen=True)
class Resources:
    """`max_rss_mib`: resident memory at which a run ends. `max_cpu_s`: processor seconds of one
    run, in case nobody is there to keep its deadline. `runs`: how many, one after the other, a
    process may serve."""

    max_rss_mib: int = 512
    max_cpu_s: int = 3600
    runs: int = 1

    @property
    def rlimits(self) -> dict[str, tuple[int, int]]:
        """Soft and hard limits by name in `resource`.

        Address space cannot be limited: V8 reserves many GB and uses little. Data can: Deno maps
        some 600 MB of it without touching them. What is left above bounds a process between two
        looks at its memory.
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
        """Resident memory at which the next run ends, in a process that holds so much more than
        it did when new: each run has as much to itself."""
        return self.max_rss_mib + max(0.0, grown_mib)

    @property
    def most_growth_mib(self) -> float:
        """How much more than when new a process may hold and serve another run."""
        return self.max_rss_mib / _GROWTH if self.runs > 1 else 0.0

    @property
    def most_taken_mib(self) -> float:
        """How much more it may have taken, whether it holds it or not: of what RLIMIT_DATA allows,
        seven times what a run may hold is left."""
        return float(self.max_rss_mib) if self.runs > 1 else 0.0


def cpu_seconds(stat: str, ticks: int) -> float:
    """Processor time used, of the text of /proc/<pid>/stat."""
    fields = stat.rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / ticks


def resident_mib(statm: str, page_bytes: int) -> float:
    """Resident memory, of the text of /proc/<pid>/statm."""
    return int(statm.split()[1]) * page_bytes / _MIB


def data_mib(statm: str, page_bytes: int) -> float:
    """Memory taken and perhaps never touched, as RLIMIT_DATA counts it, of the same text."""
    return int(statm.split()[5]) * page_bytes / _MIB
