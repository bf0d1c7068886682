"""What the text is: whether it can be read at all, and what is wrong with it."""
