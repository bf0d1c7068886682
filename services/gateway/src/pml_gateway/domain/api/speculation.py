"""Speculation: the capability that an intent and a context stand for, if one does."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from pml_common.contracts.base import Contract
from pml_common.contracts.registry import CapabilityHit, DiscoveryHit
from pml_common.contracts.tool import JsonObject
from pml_gateway.domain.api.given_arguments import missing_arguments

Outcome = Literal[
    "ran",
    "no_capability",
    "below_threshold",
    "failing",
    "missing_arguments",
    "unfit_arguments",
    "needs_approval",
    "unavailable",
]


class SpeculationNote(Contract):
    """The capability that was run for an intent, or the reason why none was. `missing` are required
    parameters that the context does not have; `unused` are names in it that are no parameters."""

    outcome: Outcome
    message: str
    threshold: float
    capability: str | None = None
    score: float | None = None
    missing: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()


@dataclass(frozen=True)
class Guess:
    """The best capability for an intent, with the arguments that a context has for it."""

    hit: CapabilityHit
    args: JsonObject
    unused: tuple[str, ...]
    threshold: float

    def note(
        self, outcome: Outcome, message: str, missing: tuple[str, ...] = ()
    ) -> SpeculationNote:
        """Tell what became of it."""
        return SpeculationNote(
            outcome=outcome,
            message=message,
            threshold=self.threshold,
            capability=self.hit.name,
            score=round(_fit(self.hit), 3),
            missing=missing,
            unused=self.unused,
        )

    @property
    def ran(self) -> SpeculationNote:
        """Tell that it was run."""
        left = f" Not used: {', '.join(self.unused)}." if self.unused else ""
        return self.note("ran", f"Ran {self.hit.name}, {self._fits}.{left}")

    @property
    def _fits(self) -> str:
        return f"whose score {_fit(self.hit):.2f} reaches the threshold {self.threshold:.2f}"

    def not_run(self, outcome: Outcome, why: str) -> SpeculationNote:
        """Tell why it was not run although its score suffices."""
        return self.note(outcome, f"Did not run {self.hit.name}, {self._fits}: {why}")


def guess(
    hits: Iterable[DiscoveryHit], context: JsonObject, threshold: float
) -> Guess | SpeculationNote:
    """Choose the best capability, if its score reaches the threshold and the context has its
    required parameters, and it does not fail mostly; else tell why none is chosen."""
    best = max(
        (hit for hit in hits if isinstance(hit, CapabilityHit)),
        key=_fit,
        default=None,
    )
    if best is None:
        none = "No capability was found for the intent: write a program of the tools below."
        return SpeculationNote(outcome="no_capability", message=none, threshold=threshold)
    properties = best.parameters_schema.get("properties")
    known = properties if isinstance(properties, dict) else {}
    found = Guess(
        best,
        {name: value for name, value in context.items() if name in known},
        tuple(name for name in context if name not in known),
        threshold,
    )
    if _fit(best) < threshold:
        weak = (
            f"Ran nothing: the best capability, {best.name}, has the score {_fit(best):.2f}, below "
            f"the threshold {threshold:.2f}. Run it by name if it is the one."
        )
        return found.note("below_threshold", weak)
    if best.health == "failing":
        good = best.last_good
        instead = "no earlier version is healthy" if good is None else f"{good} is healthy"
        return found.not_run("failing", f"it fails more often than it succeeds; {instead}.")
    missing = missing_arguments(best.parameters_schema, found.args)
    if missing:
        names = ", ".join(missing)
        why = f"the context lacks {names}. Add it, or call it with args."
        return found.not_run("missing_arguments", why).model_copy(update={"missing": missing})
    return found


def _fit(hit: CapabilityHit) -> float:
    """The score without what use added: uses of others run nothing."""
    return hit.score - hit.from_use
