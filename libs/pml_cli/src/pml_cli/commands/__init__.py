"""One module per family of commands; each function is one command, free of typer."""
