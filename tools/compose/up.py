"""`make compose-up`: start the stack of deploy/compose.yml and wait until every part is healthy."""

import argparse
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import partial
from time import monotonic, sleep

from tools.compose.project import (
    BASE,
    DEMO,
    STAND_INS,
    ComposeFailed,
    Container,
    Project,
    engine_here,
)
from tools.compose.rolling import replace_changed
from tools.compose.secrets import FOLDER, approver_key, make_secrets
from tools.images.stand_ins import LABEL, OWN, TARGETS, has_image

HEALTHY_WITHIN_S = 240.0
PULL_WITHIN_S = 900.0
POLL_S = 1.0
TAIL = "40"
_REPLACED_BY_TRACES = ("otel/opentelemetry-collector", "jaegertracing/jaeger")


def main() -> int:
    """Start what the arguments ask for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--demo", action="store_true", help="with the demo's tool server")
    parser.add_argument("--within", type=float, default=HEALTHY_WITHIN_S, metavar="SECONDS")
    given, options = parser.parse_known_args()
    try:
        up(demo=given.demo, options=options, within_s=given.within)
    except ComposeFailed as error:
        print(f"compose-up failed: {error}", file=sys.stderr)
        return 1
    return 0


def up(
    *, demo: bool = False, options: Sequence[str] = (), within_s: float = HEALTHY_WITHIN_S
) -> Project:
    """Make secrets, start, wait and print addresses; `options` are of `docker compose up`.
    Raises ComposeFailed."""
    print(f"{len(make_secrets())} secrets in {FOLDER}")
    project = project_of(demo=demo)
    replace_changed(project, partial(wait_for, project, within_s=within_s))
    if project.show("up", "--detach", "--remove-orphans", "--quiet-pull", *options) != 0:
        raise ComposeFailed(f"it did not start.\n{_reasons(project)}")
    wait_until_well(project, within_s)
    print(f"REST, MCP   {project.address('proxy', 8080)} (/mcp)")
    print(f"traces      {project.address('proxy', 16686)}")
    print(f"approvals   --key-file {approver_key()}")
    return project


def project_of(*, demo: bool) -> Project:
    """Choose the files for the images that there are; pull those that are missing. Says which are
    stand-ins. Raises ComposeFailed."""
    engine = engine_here()
    files = (BASE, DEMO) if demo else (BASE,)
    project = Project(engine, files)
    missing = _missing(project)
    with_stand_ins = Project(engine, (*files, STAND_INS))
    if any(image.startswith(_REPLACED_BY_TRACES) for image in missing) and not _missing(
        with_stand_ins
    ):
        project, missing = with_stand_ins, []
    if own := [image for image in missing if OWN.match(image)]:
        raise ComposeFailed(f"no image {', '.join(own)}: `make images` builds them")
    if missing:
        _pull(project, missing)
    for image in project.images():
        if engine.run(
            "image", "inspect", "--format", f'{{{{index .Config.Labels "{LABEL}"}}}}', image
        ):
            print(f"stand-in    {image}, made by `make stand-ins`: not the upstream image")
    return project


def _missing(project: Project) -> list[str]:
    return [image for image in project.images() if not has_image(project.engine, image)]


def _pull(project: Project, missing: Sequence[str]) -> None:
    print(f"pulling {', '.join(missing)}")
    for image in missing:
        try:
            done = subprocess.run(
                (project.engine.docker, "pull", "--quiet", image),
                capture_output=True,
                text=True,
                timeout=PULL_WITHIN_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise ComposeFailed(f"{image} was not pulled within {PULL_WITHIN_S:g} s") from None
        if done.returncode != 0:
            made = ", ".join(sorted(TARGETS))
            raise ComposeFailed(
                f"{image} cannot be pulled: {done.stderr.strip()}\nWhere no registry of images is "
                f"reached, `make stand-ins` makes {made}."
            )


def wait_until_well(project: Project, within_s: float = HEALTHY_WITHIN_S) -> None:
    """Wait until every container is healthy or has done its work. Raises ComposeFailed with the
    logs of those that are not."""

    def all_well(containers: Sequence[Container]) -> bool:
        return bool(containers) and all(one.is_well for one in containers)

    wait_for(project, all_well, "all containers", within_s=within_s)
    print(f"{len(project.containers())} containers, all healthy")


def wait_for(
    project: Project,
    holds: Callable[[Sequence[Container]], bool],
    what: str,
    *,
    within_s: float,
) -> None:
    """Wait until a condition on the containers holds. Raises ComposeFailed with the logs of those
    that are not well."""
    deadline = monotonic() + within_s
    while not holds(containers := project.containers()):
        if monotonic() > deadline or any(one.is_lost for one in containers):
            raise ComposeFailed(f"{what}: not healthy within {within_s:g} s.\n{_reasons(project)}")
        sleep(POLL_S)


def _reasons(project: Project) -> str:
    unwell = [one for one in project.containers() if not one.is_well]
    return "\n".join(f"{one.problem}:\n{_tail(project, one)}" for one in unwell)


def _tail(project: Project, container: Container) -> str:
    command = (project.engine.docker, "logs", "--tail", TAIL, container.name)
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    return "".join(f"    {line}\n" for line in done.stdout.splitlines())


if __name__ == "__main__":
    sys.exit(main())
