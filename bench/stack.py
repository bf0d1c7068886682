"""Start of the embedded stack with the two servers of examples/mcp.json: time, processor time, and
memory when idle and after workflows.

On a new folder first, then on the same. `--base CHECKOUT` starts another checkout, set up, in
alternation: ratios of such pairs vary less than times. Processor time and memory are those of `pml
up` and everything below it (bench/memory.py), the two servers included.
`uv run python bench/stack.py [--rounds 3] [--base CHECKOUT] [--workflows 100]`
"""

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import IO, cast

import httpx2
from memory import processes_of, processor_s, pss_mib

ROOT = Path(__file__).parent.parent
PROGRAM = ROOT / "examples" / "first.ts"


@dataclass(frozen=True)
class Start:
    """One start: seconds until it is ready, and of processor time until then; MiB when idle and
    after the workflows; milliseconds of the first discovery, of the next, and of the first
    workflow."""

    ready_s: float
    processor_s: float
    idle_mib: float
    worked_mib: float
    discovery_ms: float
    next_ms: float
    workflow_ms: float


def start_once(checkout: Path, home: Path, folder: Path, workflows: int, idle_s: float) -> Start:
    """Start a checkout's stack on a data folder, measure it, and stop it."""
    scripts = checkout / ".venv" / "bin"
    path = os.pathsep.join((str(scripts), os.environ["PATH"]))
    began = time.perf_counter()
    with subprocess.Popen(
        [
            scripts / "pml",
            "up",
            "--home",
            home,
            "--mcp-servers",
            ROOT / "examples/mcp.json",
            "--json",
        ],
        env={**os.environ, "PATH": path, "FOLDER": str(folder)},
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        try:
            url = json.loads(cast(IO[bytes], process.stdout).readline())["url"]
            ready_s = time.perf_counter() - began
            used = sum(map(processor_s, processes_of(process.pid)))
            time.sleep(idle_s)
            idle = _memory(process.pid)
            with httpx2.Client(base_url=url, timeout=60) as http:
                first, then = (_took(http, "discover", {"intent": "read a file"}) for _ in range(2))
                body = {"code": PROGRAM.read_text(), "args": {"folder": str(folder)}}
                workflow = _took(http, "execute", body)
                for _ in range(workflows - 1):
                    _took(http, "execute", body)
            return Start(ready_s, used, idle, _memory(process.pid), first, then, workflow)
        finally:
            process.send_signal(signal.SIGTERM)


def _memory(pid: int) -> float:
    return sum(map(pss_mib, processes_of(pid)))


def _took(http: httpx2.Client, what: str, body: Mapping[str, object]) -> float:
    """Return the milliseconds of a request, which must succeed."""
    began = time.perf_counter()
    answer = http.post(f"/api/{what}", json=body).raise_for_status().json()
    assert answer.get("status", "success") == "success", answer
    return (time.perf_counter() - began) * 1e3


def measure(checkouts: list[Path], given: argparse.Namespace, place: Path) -> None:
    """Start each checkout once on a new folder and then on the same, in alternation."""
    folder = place / "folder"
    folder.mkdir()
    (folder / "README.md").write_text("# A folder to try\n")
    subprocess.run(["git", "init", "--quiet", folder], check=True)
    starts: dict[Path, list[Start]] = {checkout: [] for checkout in checkouts}
    for number in range(given.rounds + 1):
        for index, checkout in enumerate(checkouts):
            home = place / f"data {index}"
            start = start_once(checkout, home, folder, given.workflows, given.idle)
            print(
                f"{checkout.name}, {'again' if number else 'new folder'}: {_line(start)}",
                flush=True,
            )
            starts[checkout] += [start] * (number > 0)
    for checkout in checkouts:
        print(f"{checkout.name}, median of {given.rounds}: {_line(_median(starts[checkout]))}")


def _median(starts: list[Start]) -> Start:
    return Start(
        *(statistics.median(getattr(one, f.name) for one in starts) for f in fields(Start))
    )


def _line(start: Start) -> str:
    return (
        f"ready in {start.ready_s:.1f} s, {start.processor_s:.2f} s of processor time, "
        f"idle {start.idle_mib:.0f} MiB, after workflows {start.worked_mib:.0f} MiB, "
        f"first discovery {start.discovery_ms:.0f} ms (next {start.next_ms:.0f}), "
        f"first workflow {start.workflow_ms:.0f} ms"
    )


def main() -> None:
    """Read the arguments and measure in a temporary folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workflows", type=int, default=100)
    parser.add_argument("--idle", type=float, default=10.0, help="seconds before memory is read")
    parser.add_argument("--base", type=Path, help="another checkout, set up")
    given = parser.parse_args()
    checkouts = [*([given.base.resolve()] if given.base else []), ROOT]
    with tempfile.TemporaryDirectory(prefix="pml-bench-", ignore_cleanup_errors=True) as name:
        place = Path(name)
        place.chmod(0o711)
        measure(checkouts, given, place)


if __name__ == "__main__":
    sys.exit(main())
