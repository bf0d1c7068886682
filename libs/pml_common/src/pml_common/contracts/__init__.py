"""The messages and queries between services, and the values inside them.

One module per owning service; `catalog` registers them all. Pydantic only: no I/O, no service.
"""
