"""What the registry's ports are made of: each module implements one on a real system."""
