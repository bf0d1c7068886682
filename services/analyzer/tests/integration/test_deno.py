"""Instrumented programs are programs: Deno loads every one, as the sandbox does, in one process."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from pml_analyzer.domain.analysis import Analysis, analyze
from pml_common.contracts.decision import Policy
from services.analyzer.tests.programs import SOURCES_EXAMPLE, TOOLS
from services.analyzer.tests.unit.test_calls import DYNAMIC, RESOLVED
from services.analyzer.tests.unit.test_forbidden import ALLOWED
from services.analyzer.tests.unit.test_instrument import CASES as INSTRUMENTED
from services.analyzer.tests.unit.test_normal_form import DIFFERENT, EQUAL
from services.analyzer.tests.unit.test_parameters import CASES as PARAMETERS
from services.analyzer.tests.unit.test_structure import CASES as STRUCTURES

DENO = Path(sys.executable).with_name("deno")
LOAD = """
const failures = [];
for (const code of JSON.parse(await new Response(Deno.stdin.readable).text())) {
  const names = "mcp,capabilities,args,context,console,__pml";
  const module = `export default async(${names})=>{{${code}\\n}}`;
  const bytes = new TextEncoder().encode(module);
  const text = btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
  try {
    await import(`data:application/typescript;base64,${text}`);
  } catch (error) {
    failures.push([code, String(error)]);
  }
}
console.log(JSON.stringify(failures));
"""
PROGRAMS = [
    SOURCES_EXAMPLE,
    *(code for code, *_ in STRUCTURES.values()),
    *RESOLVED.values(),
    *(code for code, _ in DYNAMIC.values()),
    *ALLOWED.values(),
    *(code for code, _ in INSTRUMENTED.values()),
    *(code for pair in (*EQUAL.values(), *DIFFERENT.values()) for code in pair),
    *(code for code, *_ in PARAMETERS.values()),
]


@pytest.mark.integration
def test_every_program_that_loads_still_loads_when_instrumented() -> None:
    broken = {code for code, _ in _failures(PROGRAMS)}
    instrumented: list[str] = []
    for code in PROGRAMS:
        outcome = analyze(code, tools=TOOLS, policy=Policy())
        if code not in broken and isinstance(outcome, Analysis):
            instrumented.append(outcome.instrumented)
    assert len(instrumented) > 250
    assert _failures(instrumented) == []


def _failures(programs: list[str]) -> list[tuple[str, str]]:
    done = subprocess.run(
        [DENO, "eval", LOAD], input=json.dumps(programs), capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return [(code, error) for code, error in json.loads(done.stdout)]
