"""What happens on each message."""
