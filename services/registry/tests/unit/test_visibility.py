"""Places of records, as a viewer sees them."""

import pytest

from pml_common.contracts.scope import Scope
from pml_registry.domain.visibility import Place, Viewer, place_of
from services.registry.tests.support.builders import ELSEWHERE, SCOPE


@pytest.mark.parametrize(
    ("scope", "place"),
    [(SCOPE, "project"), (Scope(org="acme", project="shop"), "org"), (ELSEWHERE, "public")],
)
def test_a_record_is_of_the_project_the_organisation_or_another(scope: Scope, place: Place) -> None:
    assert place_of(Viewer(SCOPE), scope) == place
