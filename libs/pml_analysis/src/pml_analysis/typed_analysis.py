"""The outcome of an analysis and a type check of the same program."""

from collections.abc import Sequence
from dataclasses import replace

from pml_analysis.analysis import Analysis, Rejection
from pml_common.contracts.structure import Diagnostic


def with_types(
    analysis: Analysis, told: Sequence[Diagnostic], *, reject: bool
) -> Analysis | Rejection:
    """Add the type errors to an analysis: a rejection if there are errors and `reject`, else the
    same with warnings."""
    errors = tuple(each for each in told if each.severity == "error")
    if reject and errors:
        return Rejection(errors)
    warnings = (each.model_copy(update={"severity": "warning"}) for each in told)
    return replace(analysis, diagnostics=(*analysis.diagnostics, *warnings))
