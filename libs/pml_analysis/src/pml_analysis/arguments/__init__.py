"""Arguments of calls, and the values that flow into them."""
