"""The passes: pure functions from one submitted program to what is known of it.

Each folder holds the passes of one question; which may ask which is said in pyproject.toml.
"""
