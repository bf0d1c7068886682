"""What calls are given, and what feeds them."""
