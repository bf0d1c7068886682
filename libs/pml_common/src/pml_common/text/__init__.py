"""Text as people see it: control characters, invisible characters, confusables."""
