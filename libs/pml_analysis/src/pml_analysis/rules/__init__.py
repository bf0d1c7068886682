"""Rules: refused constructs, and warnings."""
