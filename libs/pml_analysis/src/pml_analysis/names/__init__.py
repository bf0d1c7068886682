"""What names mean, and where values come from."""
