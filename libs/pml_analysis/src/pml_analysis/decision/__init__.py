"""Who must approve: tools, capabilities, the verdict."""
