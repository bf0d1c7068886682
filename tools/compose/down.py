"""`make compose-down`: stop the stack of deploy/compose.yml; `--volumes` removes its data, too."""

import sys

from tools.compose.project import BASE, DEMO, STAND_INS, ComposeFailed, Project, engine_here


def main() -> int:
    """Stop all parts, also those of the demo and stand-ins."""
    try:
        project = Project(engine_here(), (BASE, DEMO, STAND_INS))
        return project.show("down", "--remove-orphans", *sys.argv[1:])
    except ComposeFailed as error:
        print(f"compose-down failed: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
