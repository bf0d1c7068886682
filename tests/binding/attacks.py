"""Programs that try to pass arguments that were not shown to an approver, by shape.

`programs/<shape>.txt` holds them: a line with `# ` and the attempt, its code, and lines with `=> `.
`args` are its arguments besides ARGS, as JSON. `honest` is a program without an attempt: it must
make all its calls without a request. `runs` is the code that a lying analysis runs in its place.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.binding.expected import Json

_FOLDER: Final = Path(__file__).with_name("programs")
_RUNS: Final = "=> runs"

ARGS: Final[dict[str, Json]] = {
    "safe": "/safe",
    "evil": "/evil",
    "paths": ["/safe/1", "/safe/2"],
    "evils": ["/evil/1", "/evil/2"],
    "tool": "$T:write",
    "key": "path",
    "o": {"path": "/safe", "content": "c"},
    "bad": {"path": "/evil", "content": "c"},
    "none": None,
    "n": 2,
}
OTHERWISE: Final = """const t = mcp.$T;
const nodes = ["n1", "n2", "n3", "n4", "n1/n1", "n2/n1", "dyn:$T:write", "x"];
const made = nodes.map((node) => __pml.at(node, t.write)({ path: "/evil", content: node }));
made.push(__pml.at("n1", t.send)({ to: "/evil" }), t.erase({ path: "/evil" }));
return await Promise.allSettled(made);"""
"""The code that a lying analysis runs where a program gives none: every node is claimed."""


@dataclass(frozen=True)
class Attack:
    """One program."""

    shape: str
    tries: str
    code: str
    args: dict[str, Json]
    runs: str
    honest: int | None
    """Number of calls of ask-tools that must pass without a request; None: not an honest
    program."""

    @property
    def name(self) -> str:
        """Shape and attempt: `prototypes: an inherited path`."""
        return f"{self.shape}: {self.tries}"


def attacks() -> list[Attack]:
    """All programs, including honest ones."""
    return [
        _attack(file.stem, block)
        for file in sorted(_FOLDER.glob("*.txt"))
        for block in f"\n{file.read_text(encoding='utf-8')}".split("\n# ")[1:]
    ]


def _attack(shape: str, block: str) -> Attack:
    text, _, runs = block.strip().partition(f"\n{_RUNS}\n")
    tries, *lines = text.splitlines()
    facts = dict(line.removeprefix("=> ").split(" ", 1) for line in lines if line.startswith("=> "))
    return Attack(
        shape,
        tries,
        "\n".join(line for line in lines if not line.startswith("=> ")),
        {**ARGS, **json.loads(facts.get("args", "{}"))},
        runs or OTHERWISE,
        int(facts["honest"]) if "honest" in facts else None,
    )
