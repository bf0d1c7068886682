"""Fakes of servers, for tests."""
