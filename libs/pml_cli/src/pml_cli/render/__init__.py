"""Rendering of data for people. Pure: nothing here prints."""
