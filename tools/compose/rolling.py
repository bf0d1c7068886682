"""Replaces running services one after the other, so that requests are answered meanwhile.

`docker compose up` stops all that changed, and what depends on it, before it starts anything. Here
the new migrations run first; then of each service whose configuration or image differs the new
containers start beside the old ones, which are stopped once the new ones are healthy.
"""

from collections.abc import Callable, Sequence

from pml_common.contracts.catalog import SERVICES
from tools.compose.project import ComposeFailed, Container, Project

WaitUntil = Callable[[Callable[[Sequence[Container]], bool], str], None]
"""Waits for a condition on the containers, with a bound; the text says what is waited for."""

_ORDER = (*(name for name in SERVICES if name != "gateway"), "gateway")
"""The gateway last: what it asks is new by then."""
_HASH = "com.docker.compose.config-hash"


def replace_changed(project: Project, wait: WaitUntil) -> None:
    """Replace what runs and differs; does nothing where no gateway runs. Raises ComposeFailed."""
    running = {name: project.of_service(name) for name in _ORDER}
    if not running["gateway"]:
        return
    changed = [name for name in _ORDER if running[name] and _differs(project, name, running[name])]
    if not changed:
        return
    print(f"replacing {', '.join(changed)}, one after the other", flush=True)
    _migrate(project, wait)
    replicas = project.configuration()["services"]
    for name in changed:
        _replace(project, name, running[name], replicas[name]["deploy"]["replicas"], wait)


def _differs(project: Project, service: str, containers: Sequence[Container]) -> bool:
    """Whether a container was made from another configuration, or its image was built again."""
    wanted = project.run("config", "--hash", service).split()[1]
    image = project.configuration()["services"][service]["image"]
    form = f'{{{{index .Config.Labels "{_HASH}"}}}} {{{{.Image}}}}'
    names = [one.name for one in containers]
    made = project.engine.run("inspect", "--format", form, *names).splitlines()
    newest = project.engine.run("image", "inspect", "--format", "{{.Id}}", image)
    return any(line.split() != [wanted, newest] for line in made)


def _migrate(project: Project, wait: WaitUntil) -> None:
    """Run migrations, and what else ends, in new containers: Compose would stop what depends on
    replaced ones. Without `--no-deps`, which would make other containers than `up` alone makes."""
    services = project.configuration()["services"]
    names = [name for name, one in services.items() if one.get("restart") == "no"]
    project.run("rm", "--force", "--stop", *names)
    project.run("up", "--detach", "--no-recreate", *names)

    def done(containers: Sequence[Container]) -> bool:
        found = [one for one in containers if one.service in names]
        if failed := [one.name for one in found if one.is_lost]:
            raise ComposeFailed(f"{', '.join(failed)} failed: nothing was replaced")
        return len(found) == len(names) and all(one.state == "exited" for one in found)

    wait(done, "migrations")


def _replace(
    project: Project, service: str, old: Sequence[Container], replicas: int, wait: WaitUntil
) -> None:
    count = len(old) + replicas
    before = {one.name for one in old}
    scale = ("--scale", f"{service}={count}")
    project.run("up", "--detach", "--no-recreate", *scale, service)

    def healthy(containers: Sequence[Container]) -> bool:
        new = [one for one in containers if one.service == service and one.name not in before]
        return len(new) == replicas and all(one.is_well for one in new)

    wait(healthy, f"the new {service}")
    project.engine.run("stop", *sorted(before))
    project.engine.run("rm", *sorted(before))
