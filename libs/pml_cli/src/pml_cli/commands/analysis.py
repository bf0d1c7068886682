"""Reading programs offline, without any stack."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from pml_analyzer.domain.analysis import Analysis, Rejection
from pml_analyzer.domain.analysis import analyze as read
from pml_analyzer.domain.report import to_json
from pml_analyzer.domain.toolbox import Tools
from pml_cli.arguments import read_source
from pml_cli.commands.program_lines import answers
from pml_cli.documents import read_policy, read_tools
from pml_cli.errors import FAILED
from pml_cli.output import Output
from pml_cli.render.analysis import analysis_report, rejection_report
from pml_common.contracts.decision import Policy
from pml_common.contracts.tool import ToolDefinition
from pml_common.drawing.dot import dot
from pml_common.drawing.mermaid import MOST_ARROWS, mermaid

Form = Literal["tree", "json", "mermaid", "dot"]


@dataclass(frozen=True)
class Reader:
    """What programs are read with; `is_bare` when nobody said which tools there are."""

    tools: Sequence[ToolDefinition]
    policy: Policy
    types: bool = False
    is_bare: bool = False

    def read(self, code: str) -> Analysis | Rejection:
        """One program."""
        found = read(code, tools=self.tools, policy=self.policy)
        if self.types:
            from pml_cli.commands.types import checked

            return checked(code, found, self.tools)
        return found


def reader(catalog: str | None, policy: str | None, *, types: bool = False) -> Reader:
    """From files. Raises CommandError on a catalogue or policy that is none."""
    tools = () if catalog is None else read_tools(catalog)
    rules = Policy() if policy is None else read_policy(policy)
    return Reader(Tools(tools), rules, types, is_bare=catalog is None)


def analyze(out: Output, file: str, reader: Reader, form: Form) -> int:
    """Show structure and decision; exit code 1 when the program is rejected. Raises CommandError.

    A drawing of a rejected program is nothing on stdout; why is on stderr.
    """
    found = reader.read(read_source(file))
    if isinstance(found, Rejection):
        return _rejected(out, found, form, is_bare=reader.is_bare)
    if form in ("mermaid", "dot"):
        _draw(out, found, form)
    else:
        out.show(to_json(found), *analysis_report(found, file if file != "-" else "program"))
    return 0


def analyze_lines(reader: Reader, lines: Iterable[bytes], out: Output) -> int:
    """One program a line, one answer a line, each at once."""
    for answer in answers(reader.read, lines):
        out.write(f"{answer}\n")
    return 0


def _draw(out: Output, found: Analysis, form: Form) -> None:
    draw = mermaid if form == "mermaid" else dot
    edges = len(found.structure.edges)
    if form == "mermaid" and edges > MOST_ARROWS:
        out.note(f"{edges} edges: Mermaid's viewers refuse more than {MOST_ARROWS}; --format dot")
    out.write(draw(found.structure, dynamic=found.dynamic_calls, decision=found.decision))


def _rejected(out: Output, found: Rejection, form: Form, *, is_bare: bool) -> int:
    if is_bare and found.missing_tools:
        out.note(
            "offline, only tools of a catalogue are known: pml tools --json > tools.json, "
            "then --catalog tools.json"
        )
    if form in ("mermaid", "dot"):
        out.notes.print(*rejection_report(found), sep="\n")
    else:
        out.show(to_json(found), *rejection_report(found))
    return FAILED
