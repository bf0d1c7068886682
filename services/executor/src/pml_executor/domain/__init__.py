"""Pure rules of a run: permissions, journal and replay, endings, and the sandbox's limits."""
