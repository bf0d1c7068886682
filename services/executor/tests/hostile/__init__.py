"""Programs that want out, or want everything."""
