"""Every message that crosses a service boundary, and the values inside them.

One module per owning service; `catalog` lists them all. Pydantic only: no I/O, no service.
"""
