"""Starts the learner; `migrate` as argument: applies its migrations and ends."""

import sys

from pml_common.service import run_migrations, run_service
from pml_common.settings_at_start import read_settings
from pml_learner.app import serve
from pml_learner.settings import LearnerSettings

if __name__ == "__main__":
    settings = read_settings("learner", LearnerSettings)
    if sys.argv[1:] == ["migrate"]:
        run_migrations("learner", settings)
    else:
        run_service("learner", settings, serve)
