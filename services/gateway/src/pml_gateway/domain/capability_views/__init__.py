"""Views of a capability as graphs to draw: its definition, and its invocations."""
