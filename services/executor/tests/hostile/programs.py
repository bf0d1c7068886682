"""The hostile programs, by what they are after, and how each must end.

`programs/<group>.txt` holds them: a line with `# ` and what a program wants, its code, and lines
with `=> `. `ends` lists the error kinds that are right; "fine" is a program that got nothing by it
and returned, "parked" one that waits for a person. `bare` says how a few end where Deno's and
Node's names are left in the Worker.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

_FOLDER: Final = Path(__file__).with_name("programs")
_EXPRESSION: Final = "is an expression that is refused"
_TRIED: Final = """globalThis.console = {{}} as Console;
try {{ return {{ got: String(await ({})).slice(0, 80) }}; }}
catch (error) {{ return {{ refused: String(error).slice(0, 200) }}; }}"""


@dataclass(frozen=True)
class Hostile:
    """One program."""

    group: str
    wants: str
    code: str
    ends: tuple[str, ...]
    bare: tuple[str, ...]
    timeout_s: float

    @property
    def id(self) -> str:
        """`network: node net`."""
        return f"{self.group}: {self.wants}"

    def expected(self, *, bare: bool) -> tuple[str, ...]:
        """How it must end."""
        return self.bare if bare else self.ends


def hostile_programs() -> list[Hostile]:
    """All of them."""
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
