"""One module per family of commands; each function is one command, without its command line."""
