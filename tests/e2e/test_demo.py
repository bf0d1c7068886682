"""`pml demo` as a newcomer runs it, with real servers in a folder of its own."""

import asyncio
import os
import re
import sys
from pathlib import Path

import pytest

from libs.pml_local.tests.support.patience import PATIENCE_S

pytestmark = pytest.mark.e2e

WITHIN_S = 10 * PATIENCE_S
"""Against a hang; an idle machine takes 180 s with downloads and 20 s without."""
WRITTEN, READ = "n1 → n2 → d1 false → n4 → n5", "n1 → n2 → d1 true → n3"


async def _demo(home: Path) -> str:
    """Run the demo; it must succeed. Returns its output."""
    demo = await asyncio.create_subprocess_exec(
        Path(sys.executable).with_name("pml"),
        "demo",
        "--home",
        home,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={**os.environ, "NO_COLOR": "1"},
    )
    async with asyncio.timeout(WITHIN_S):
        output, _ = await demo.communicate()
    text = output.decode()
    assert demo.returncode == 0, text
    return text


def _learned(text: str) -> list[list[str]]:
    """The rows of the table of learned paths: path, runs, …, and `dominant` where it applies."""
    table = text[text.index("learned paths") :]
    rows = [re.split(r"\s*│\s*", line.strip(" │")) for line in table.splitlines() if "│ n1" in line]
    assert rows, text
    return rows


async def test_the_demo_passes(new_home: Path) -> None:
    first = await _demo(new_home)
    for fact in (
        "nothing has run: visit-1/ does not exist",
        "visit-1/monday.md was written",
        "visit-1/monday.md was read",
        "notes:ensure is found by its meaning",
        "visit-1/tuesday.md was written",
        "both branches were taken, and no other path",
    ):
        assert f"✓ {fact}" in first
    assert re.search(r"✓ all \d+ processes have ended", first)
    assert first.count(WRITTEN) == 2 * 2 + 1, (
        "printed as it ran, in the list of runs, and in one trace"
    )
    assert first.count(READ) == 3 * 2 + 1
    learned = {row[0]: row for row in _learned(first)}
    assert learned["n1 → n2 → d1 → n3"][1] == "3"
    assert "dominant" in learned["n1 → n2 → d1 → n3"]
    assert learned["n1 → n2 → d1 → n4 → n5"][1] == "2"
    note = new_home / "workspace" / "visit-1" / "monday.md"
    assert "Water the plants." in note.read_text()


@pytest.mark.nightly
async def test_the_demo_passes_again_on_its_folder(new_home: Path) -> None:
    await _demo(new_home)
    second = await _demo(new_home)
    assert "✓ visit-2/monday.md was written" in second
    learned = {row[0]: row for row in _learned(second)}
    assert learned["n1 → n2 → d1 → n3"][1] == "6"
    assert "dominant" in learned["n1 → n2 → d1 → n3"]
