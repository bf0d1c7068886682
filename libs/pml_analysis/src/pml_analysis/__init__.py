"""The analysis passes: pure functions from one submitted program to an analysis of it.

Each folder holds the passes that answer one question; pyproject.toml lists which may import which.
"""
