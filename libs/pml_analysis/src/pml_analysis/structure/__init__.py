"""Structure: the nodes and edges of a program, from its calls and their order."""
