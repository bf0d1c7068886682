"""What runs, and what it is the same as."""
