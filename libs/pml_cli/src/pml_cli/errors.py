"""Errors the command ends with: one line on stderr, no traceback."""

USAGE, FAILED, UNREACHABLE, APPROVAL_REQUIRED, STILL_RUNNING = 2, 1, 4, 3, 5
"""Exit codes; 0 is success alone."""


class CommandError(Exception):
    """What went wrong and what to do about it."""

    def __init__(self, message: str, exit_code: int = FAILED) -> None:
        super().__init__(message)
        self.exit_code = exit_code
