"""`make compose-logs`: logs of the running stack; arguments are those of `docker compose logs`."""

import sys

from tools.compose.project import ComposeFailed, running_project


def main() -> int:
    """Print the logs."""
    try:
        return running_project().show("logs", "--no-color", *sys.argv[1:])
    except ComposeFailed as error:
        print(f"compose-logs failed: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
