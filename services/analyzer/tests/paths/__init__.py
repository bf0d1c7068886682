"""Recognition of reported paths as paths through a structure."""

from services.analyzer.tests.paths.acceptor import Step, TooManyWays, first_wrong_step

__all__ = ["Step", "TooManyWays", "first_wrong_step"]
