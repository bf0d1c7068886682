"""The stack of deploy/compose.yml, once per session, on the images that there are."""

import logging
import os
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.containers.stack import OWN_SETTINGS, ContainerStack, container_stack
from tools.compose.project import ComposeFailed
from tools.compose.up import project_of
from tools.images.engine import Engine, NoEngine, find_engine
from tools.images.stand_ins import has_image, third_party

log = logging.getLogger(__name__)
REQUIRED = "CI_REQUIRE_DOCKER"
"""Variable by which a missing engine is a failure."""


@pytest.fixture(scope="session")
def engine() -> Engine:
    """The Docker engine; without one these tests are skipped, or fail if one is required."""
    try:
        return find_engine()
    except NoEngine as error:
        if os.environ.get(REQUIRED) == "1":
            pytest.fail(f"no container test can run: {error}")
        pytest.skip(f"NO CONTAINER TEST RAN: {error}")


@pytest.fixture(scope="session")
async def containers(
    engine: Engine, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> AsyncGenerator[ContainerStack]:
    """The running stack. After a failure its logs are in a file that is named."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith(OWN_SETTINGS)]:
            patch.delenv(name)
        home = tmp_path_factory.mktemp("containers")
        try:
            files = project_of(demo=False).files
        except ComposeFailed as error:
            pytest.fail(str(error))
        profiles = ["qdrant"] if has_qdrant(engine, files[0]) else []
        try:
            async with container_stack(engine, home, files, profiles) as stack:
                yield stack
        finally:
            if request.session.testsfailed:
                log.error("logs of all containers: %s", home / "containers.log")


def has_qdrant(engine: Engine, file: Path) -> bool:
    """Whether the engine has the image of Qdrant; what there is of the others is checked before."""
    return any(has_image(engine, image) for image in third_party(file) if "qdrant" in image)
