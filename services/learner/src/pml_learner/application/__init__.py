"""Use cases of the learner."""
