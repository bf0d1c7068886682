"""Circuit breaker of one MCP server: refuses calls while it leaves them unanswered."""

from dataclasses import dataclass, replace
from typing import Literal

CircuitState = Literal["closed", "open", "half_open"]


@dataclass(frozen=True)
class CircuitRules:
    """After `failures` unanswered calls in a row the circuit opens, for the next of `cooldowns_s`,
    whose last one repeats."""

    failures: int = 5
    cooldowns_s: tuple[float, ...] = (5.0, 15.0, 30.0, 60.0)


@dataclass(frozen=True)
class Circuit:
    """`closed`: every call is made; `open`: none, until `until` in seconds of a monotonic clock;
    `half_open`: one at a time, as a probe, `probing` while it is under way.

    `failures` counts the unanswered calls in a row and `why` describes the last of them; `opened`
    counts how often it has opened since a call was answered.
    """

    state: CircuitState = "closed"
    failures: int = 0
    opened: int = 0
    until: float = 0.0
    probing: bool = False
    why: str = ""

    def state_at(self, now: float) -> CircuitState:
        """Return the state: an open circuit is half-open once its time is over."""
        return "half_open" if self.state == "open" and now >= self.until else self.state


CLOSED = Circuit()


def admitting(circuit: Circuit, now: float) -> Circuit | None:
    """Return the circuit with a call under way; None if no call may be made now."""
    match circuit.state_at(now):
        case "closed":
            return circuit
        case "half_open" if not circuit.probing:
            return replace(circuit, state="half_open", probing=True)
        case _:
            return None


def after_failure(circuit: Circuit, rules: CircuitRules, now: float, why: str) -> Circuit:
    """Return the circuit after a call that was not answered."""
    if circuit.state == "open":
        return circuit  # a call from before
    failures = circuit.failures + 1
    if circuit.state == "closed" and failures < rules.failures:
        return replace(circuit, failures=failures, why=why)
    cooldown = rules.cooldowns_s[min(circuit.opened, len(rules.cooldowns_s) - 1)]
    return Circuit("open", failures, circuit.opened + 1, now + cooldown, why=why)


def refusal(circuit: Circuit, server: str, now: float) -> str:
    """Explain why a call is refused, and until when."""
    again = "one call is being made to see whether it answers again"
    if circuit.state_at(now) == "open":
        again = f"it is tried again in {circuit.until - now:.0f} s"
    return (
        f"MCP server {server!r} left {circuit.failures} calls in a row unanswered (the last one: "
        f"{circuit.why}), so its circuit is open: {again}"
    )
