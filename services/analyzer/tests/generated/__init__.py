"""Programs made up by hypothesis. `@1@` stands for a local name, `~` for layout, `§` for
the end of a statement."""

from services.analyzer.tests.generated.programs import PROGRAMS
from services.analyzer.tests.generated.text import NAMES, render

__all__ = ["NAMES", "PROGRAMS", "render"]
