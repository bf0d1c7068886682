"""Data → what a person sees. Pure: nothing here prints."""
