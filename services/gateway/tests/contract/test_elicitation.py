"""Contract of the settings of elicitation, and of what is recorded of a decision made so."""

from functools import partial

import pytest

from pml_common.contracts.gateway import ApprovalDecided, DecidedThrough
from pml_gateway.domain.api.elicitation import ElicitationSetting
from pml_gateway.domain.workflow.events import Analyzed, Decided
from pml_gateway.domain.workflow.workflow import advance
from services.gateway.tests.conftest import Stores
from services.gateway.tests.support.builders import (
    AT,
    ELSEWHERE,
    RULES,
    SCOPE,
    analyzed,
    later,
    workflow,
)
from services.gateway.tests.support.stored import NASTY

pytestmark = pytest.mark.integration


def _set(by: str, seconds: float, *, may_elicit: bool) -> ElicitationSetting:
    return ElicitationSetting(
        principal="mira", may_elicit=may_elicit, set_by=by, set_at=later(seconds)
    )


async def test_nobody_may_elicit_before_it_is_set_for_them(stores: Stores) -> None:
    settings = stores.elicitation
    assert await settings.of(SCOPE, "mira") == ElicitationSetting(principal="mira")
    on = _set("noor", 1, may_elicit=True)
    for again in (on, _set("ada", 2, may_elicit=True)):
        await settings.set(SCOPE, again)
        assert await settings.of(SCOPE, "mira") == on
    assert not (await settings.of(ELSEWHERE, "mira")).may_elicit
    assert not (await settings.of(SCOPE, "ben")).may_elicit
    off = _set("ada", 3, may_elicit=False)
    await settings.set(SCOPE, off)
    assert await settings.of(SCOPE, "mira") == off


async def test_the_way_of_a_decision_is_recorded(stores: Stores) -> None:
    through = DecidedThrough(way="elicitation", client=NASTY, client_version="2.3")
    new = workflow()
    waiting, effects = advance(new, Analyzed(analyzed(new, "ask"), AT), RULES)
    assert await stores.workflows.accept(waiting, effects) is None
    assert waiting.approval is not None
    yes = Decided(waiting.approval.approval_id, "approved", "mira", later(1), through=through)
    step = partial(advance, workflow_event=yes, rules=RULES)
    settled = await stores.workflows.change(SCOPE, new.workflow_id, step)
    assert settled is not None
    (told,) = [each for each in settled[1] if isinstance(each, ApprovalDecided)]
    assert (told.decided_by, told.decided_through) == ("mira", through)
    found = await stores.workflows.get(SCOPE, new.workflow_id)
    assert found is not None
    assert found.approval is not None
    assert found.approval.decided_through == through
