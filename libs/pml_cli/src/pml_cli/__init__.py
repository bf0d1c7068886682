"""The pml command."""
