"""Typed tools: declarations, and checking programs against them."""
