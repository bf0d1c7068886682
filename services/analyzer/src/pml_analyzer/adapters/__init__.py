"""Where the catalogue comes from."""
