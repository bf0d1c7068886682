"""Contracts, bus, telemetry and storage that every PML service shares."""
