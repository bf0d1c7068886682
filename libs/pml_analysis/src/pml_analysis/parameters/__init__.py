"""What the caller may hand in."""
