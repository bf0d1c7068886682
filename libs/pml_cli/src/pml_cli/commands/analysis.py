"""Reading programs offline, without any stack."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from pml_analysis.analysis import NO_CAPABILITIES, Analysis, Rejection
from pml_analysis.analysis import analyze as read
from pml_analysis.decision.capabilities import Library
from pml_analysis.decision.toolbox import Tools
from pml_analysis.report import to_json
from pml_cli.arguments import read_source
from pml_cli.commands.program_lines import answers
from pml_cli.documents import read_library, read_policy, read_tools
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
    """Inputs of an analysis; `tools` and `capabilities` are None where no file gives them."""

    tools: Sequence[ToolDefinition] | None
    policy: Policy
    library: Library | None = None
    types: bool = False

    def read(self, code: str) -> Analysis | Rejection:
        """One program."""
        tools, library = self.tools or (), self.library or NO_CAPABILITIES
        found = read(code, tools=tools, policy=self.policy, capabilities=library)
        if self.types:
            from pml_cli.commands.types import checked

            return checked(found, tools, library.definitions)
        return found


@dataclass(frozen=True)
class Files:
    """Paths of an analysis' inputs; `scope` selects the policy in its file."""

    catalog: str | None
    policy: str | None
    capabilities: str | None
    scope: str


def reader(files: Files, *, types: bool = False) -> Reader:
    """From files. Raises CommandError on one that is not what it should be."""
    return Reader(
        tools=None if files.catalog is None else Tools(read_tools(files.catalog)),
        policy=Policy() if files.policy is None else read_policy(files.policy, files.scope),
        library=None if files.capabilities is None else read_library(files.capabilities),
        types=types,
    )


def analyze(out: Output, file: str, reader: Reader, form: Form) -> int:
    """Show structure and decision; exit code 1 when the program is rejected. Raises CommandError.

    A drawing of a rejected program is nothing on stdout; why is on stderr.
    """
    found = reader.read(read_source(file))
    if isinstance(found, Rejection):
        explain(out, found, reader)
        return _rejected(out, found, form)
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
    out.document(draw(found.structure, dynamic=found.dynamic_calls, decision=found.decision))


def explain(out: Output, found: Rejection, reader: Reader) -> None:
    """Print how to provide the tools and capabilities that are not known."""
    if reader.tools is None and found.missing_tools:
        out.note(
            "offline, only tools of a catalogue are known: pml tools --json > tools.json, "
            "then --catalog tools.json"
        )
    if reader.library is None and found.missing_capabilities:
        out.note(
            "offline, only capabilities of a list are known: pml capabilities --json > "
            "capabilities.json, then --capabilities capabilities.json"
        )


def _rejected(out: Output, found: Rejection, form: Form) -> int:
    if form in ("mermaid", "dot"):
        out.remark(*rejection_report(found))
    else:
        out.show(to_json(found), *rejection_report(found))
    return FAILED
