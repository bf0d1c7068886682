"""A program with the literal arguments of its calls lifted into parameters."""

import json

from pml_analysis.analysis import NO_CAPABILITIES, Rejection
from pml_analysis.lifted import Lifted, lifted
from pml_analysis.report import to_json
from pml_cli.arguments import read_source
from pml_cli.commands.analysis import Reader, explain
from pml_cli.errors import FAILED
from pml_cli.output import Output
from pml_cli.render.analysis import rejection_report
from pml_common.contracts.tool import JsonObject


def lift(out: Output, file: str, reader: Reader) -> int:
    """Print the program, and on stderr what its new parameters are; exit code 1 when it is
    rejected. Raises CommandError."""
    found = lifted(
        read_source(file),
        tools=reader.tools or (),
        policy=reader.policy,
        capabilities=reader.library or NO_CAPABILITIES,
    )
    if isinstance(found, Rejection):
        explain(out, found, reader)
        if out.as_json:
            out.show(to_json(found))
        out.remark(*rejection_report(found))
        return FAILED
    if out.as_json:
        out.show(_to_json(found))
        return 0
    out.document(found.code if found.code.endswith("\n") else f"{found.code}\n")
    for name, parameter in found.parameters.items():
        default = json.dumps(parameter.default, ensure_ascii=False)
        out.note(f"{name} = {default}  {', '.join(parameter.node_ids)}")
    return 0


def _to_json(found: Lifted) -> JsonObject:
    return {
        "code": found.code,
        "parameters_schema": found.parameters_schema,
        "lifted": {
            name: {"node_ids": list(parameter.node_ids), "default": parameter.default}
            for name, parameter in found.parameters.items()
        },
    }
