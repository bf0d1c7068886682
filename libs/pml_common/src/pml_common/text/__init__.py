"""Text as people see it: what steers a terminal, hides, or looks like something else."""
