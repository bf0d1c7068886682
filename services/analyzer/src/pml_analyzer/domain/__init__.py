"""The passes: pure functions from one submitted program to what is known of it."""
