"""Pure rules of a run: what it may do, what its journal means, how it ends."""
