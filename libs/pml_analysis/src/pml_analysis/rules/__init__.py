"""What is refused, and what is warned about."""
