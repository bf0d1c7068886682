"""Starts the learner."""

from pml_common.service import run_service
from pml_learner.app import serve
from pml_learner.settings import LearnerSettings

if __name__ == "__main__":
    run_service("learner", LearnerSettings(), serve)
