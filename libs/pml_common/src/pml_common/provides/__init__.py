"""Which result can feed which call, told by JSON Schemas alone: shared by analyzer and registry."""
