"""Starts the learner; `migrate` as argument: applies its migrations and ends."""

import sys

from pml_common.service import run_migrations, run_service
from pml_learner.app import serve
from pml_learner.settings import LearnerSettings

if __name__ == "__main__":
    if sys.argv[1:] == ["migrate"]:
        run_migrations("learner", LearnerSettings())
    else:
        run_service("learner", LearnerSettings(), serve)
