"""The distribution that brings the command and, with its extras, what the command runs."""
