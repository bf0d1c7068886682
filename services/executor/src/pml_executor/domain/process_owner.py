"""Which runs may follow one another in a process."""

from pml_common.contracts.executor import RunWorkflow
from pml_common.contracts.scope import Scope


def process_owner(command: RunWorkflow) -> Scope | None:
    """Whose other runs may be in the same process before or after this one; None: nobody's.

    What a person had to agree to is more than the scope's programs may do by themselves: one that
    broke out unnoticed must find nothing of it.
    """
    return command.scope if command.grant.approved_by is None else None
