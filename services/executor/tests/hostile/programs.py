"""The hostile programs by their goals, and the end that each must have.

`programs/<group>.txt` contains them: a line with `# ` and a program's goal, its code, and lines
with `=> `. `ends` lists the error kinds that are right; "fine" is a program that gained nothing
and returned, "parked" one that waits for approval. `bare` has the ends of a few where Deno's and
Node's names are left in the Worker. `seconds` is the timeout where a timeout is a right end.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

_FOLDER: Final = Path(__file__).with_name("programs")
GENEROUS_S: Final = 90.0
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
    bare: tuple[str, ...]
    short_timeout_s: float

    @property
    def id(self) -> str:
        """Group and goal, such as `network: node net`."""
        return f"{self.group}: {self.wants}"

    def expected(self, *, bare: bool) -> tuple[str, ...]:
        """Return the ends that are right."""
        return self.bare if bare else self.ends

    def timeout_s(self, *, bare: bool) -> float:
        """Return the run's timeout: short where a timeout is a right end, else one that no busy
        machine reaches."""
        return self.short_timeout_s if "timeout" in self.expected(bare=bare) else GENEROUS_S


def hostile_programs() -> list[Hostile]:
    """Return all programs."""
    return [
        _program(file.stem, block)
        for file in sorted(_FOLDER.glob("*.txt"))
        for block in f"\n{file.read_text()}".split("\n# ")[1:]
    ]


def _program(group: str, block: str) -> Hostile:
    wants, *lines = block.strip().splitlines()
    facts = [line.removeprefix("=> ") for line in lines if line.startswith("=> ")]
    code = "\n".join(line for line in lines if not line.startswith("=> "))
    named = {name: rest for name, _, rest in (fact.partition(" ") for fact in facts)}
    is_expression = _EXPRESSION in facts
    ends = ("refused",) if is_expression else tuple(named["ends"].split())
    return Hostile(
        group,
        wants,
        _TRIED.format(code) if is_expression else code,
        ends,
        tuple(named["bare"].split()) if "bare" in named else ends,
        float(named.get("seconds", 10)),
    )
