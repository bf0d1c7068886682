"""One file per message."""
