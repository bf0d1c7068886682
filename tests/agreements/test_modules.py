"""The module compiled before the approval is the module that runs."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
COMPILED = ROOT / "services/analyzer/src/pml_analyzer/compiler/compile.js"
RUNTIME = ROOT / "services/executor/src/pml_executor/runtime"
RUN = RUNTIME / "worker/main.ts"
NAMED = RUNTIME / "worker/module_text.ts"


def _constant(path: Path, name: str) -> str:
    found = re.search(
        rf"^(?:export )?const {name} = (.*);$", path.read_text(encoding="utf-8"), re.MULTILINE
    )
    assert found is not None, f"{name} in {path}"
    return found[1]


def test_the_compiler_and_the_sandbox_make_the_same_module_of_a_program() -> None:
    assert _constant(COMPILED, "NAMES") == _constant(NAMED, "NAMES")
    assert _constant(COMPILED, "CODA") == _constant(RUN, "CODA")
    # A line before the author's first one simplifies places, and makes no difference.
    assert _constant(COMPILED, "PRELUDE").replace(r"\n", "") == _constant(RUN, "PRELUDE")
