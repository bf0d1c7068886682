"""What calls what, in which order: the nodes and edges of a program."""
