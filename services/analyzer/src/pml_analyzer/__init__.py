"""Source code to structure, decision and instrumented code."""
