"""The circuit breaker of an MCP server."""

from dataclasses import replace

from pml_gateway.domain.servers.circuit import (
    CLOSED,
    Circuit,
    CircuitRules,
    admitting,
    after_failure,
    refusal,
)

RULES = CircuitRules(failures=2, cooldowns_s=(5.0, 20.0))


def _opened(now: float = 100.0) -> Circuit:
    once = after_failure(CLOSED, RULES, now, "first")
    assert admitting(once, now) == once, "one failure does not open it"
    return after_failure(once, RULES, now, "second")


def test_it_opens_after_failures_in_a_row_and_refuses_until_its_time_is_over() -> None:
    opened = _opened()
    assert (opened.state, opened.until) == ("open", 105.0)
    assert admitting(opened, 104.9) is None
    assert opened.state_at(105.0) == "half_open"


def test_half_open_it_admits_one_probe_at_a_time() -> None:
    probing = admitting(_opened(), 105.0)
    assert probing is not None
    assert (probing.state, probing.probing) == ("half_open", True)
    assert admitting(probing, 105.0) is None
    assert admitting(replace(probing, probing=False), 106.0) == probing


def test_a_probe_that_fails_opens_it_for_longer() -> None:
    probing = admitting(_opened(), 105.0)
    assert probing is not None
    again = after_failure(probing, RULES, 110.0, "third")
    assert (again.state, again.until, again.failures) == ("open", 130.0, 3)
    half = admitting(again, 130.0)
    assert half is not None
    assert after_failure(half, RULES, 130.0, "fourth").until == 150.0, "the last one repeats"


def test_calls_from_before_it_opened_change_nothing() -> None:
    opened = _opened()
    assert after_failure(opened, RULES, 101.0, "late") == opened


def test_a_refusal_says_why_and_until_when() -> None:
    opened = _opened()
    why = "MCP server 'fs' left 2 calls in a row unanswered (the last one: second), so its circuit "
    assert refusal(opened, "fs", 101.0) == f"{why}is open: it is tried again in 4 s"
    half = refusal(opened, "fs", 106.0)
    assert half == f"{why}is open: one call is being made to see whether it answers again"
