"""Type checks of programs by the TypeScript inside Deno, for the analyzer and the command."""
