"""The hostile programs by their goals, and the end that each must have.

`programs/<group>.txt` contains them: a line with `# ` and a program's goal, its code, and lines
with `=> `. `ends` lists the error kinds that are right; "fine" is a program that gained nothing
and returned, "parked" one that waits for approval. `bare` has the ends of a few where Deno's and
Node's names are left in the Worker, `realm` those of a few in a realm. `seconds` is the timeout
where a timeout is a right end.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from libs.pml_local.tests.support.patience import PATIENCE_S

Kind = Literal["worker", "bare", "realm"]
_FOLDER: Final = Path(__file__).with_name("programs")
GENEROUS_S: Final = 2 * PATIENCE_S
_EXPRESSION: Final = "is an expression that is refused"
_TRIED: Final = """globalThis.console = {{}} as Console;
try {{ return {{ got: String(await ({})).slice(0, 80) }}; }}
catch (error) {{ return {{ refused: String(error).slice(0, 200) }}; }}"""


@dataclass(frozen=True)
class Hostile:
    """One hostile program."""

    group: str
    wants: str
    code: str
    ends: tuple[str, ...]
    others: dict[str, tuple[str, ...]]
    short_timeout_s: float

    @property
    def id(self) -> str:
        """Group and goal, such as `network: node net`."""
        return f"{self.group}: {self.wants}"

    def expected(self, kind: Kind) -> tuple[str, ...]:
        """Return the ends that are right in a Worker or realm of this kind."""
        return self.others.get(kind, self.ends)

    def timeout_s(self, kind: Kind) -> float:
        """Return the run's timeout: short where a timeout is a right end, else one that no busy
        machine reaches."""
        return self.short_timeout_s if "timeout" in self.expected(kind) else GENEROUS_S


def hostile_programs() -> list[Hostile]:
    """Return all programs."""
    return [program for file in sorted(_FOLDER.glob("*.txt")) for program in programs_in(file)]


def programs_in(file: Path, ends: str = "") -> list[Hostile]:
    """Return the programs of one file; `ends` is the right end of those that name none."""
    blocks = f"\n{file.read_text(encoding='utf-8')}".split("\n# ")[1:]
    return [_program(file.stem, block, ends) for block in blocks]


def _program(group: str, block: str, usual: str) -> Hostile:
    wants, *lines = block.strip().splitlines()
    facts = [line.removeprefix("=> ") for line in lines if line.startswith("=> ")]
    code = "\n".join(line for line in lines if not line.startswith("=> "))
    named = {name: rest for name, _, rest in (fact.partition(" ") for fact in facts)}
    is_expression = _EXPRESSION in facts
    ends = ("refused",) if is_expression else tuple(named.get("ends", usual).split())
    return Hostile(
        group,
        wants,
        _TRIED.format(code) if is_expression else code,
        ends,
        {kind: tuple(named[kind].split()) for kind in ("bare", "realm") if kind in named},
        float(named.get("seconds", 10)),
    )
