"""The program that runs, and its identity."""
