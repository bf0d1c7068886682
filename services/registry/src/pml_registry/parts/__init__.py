"""Parts of the registry that the composition root puts together."""
