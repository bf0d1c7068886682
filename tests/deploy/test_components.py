"""Components agree with the code: consumers, users of NATS, roles of Postgres."""

import asyncio

import asyncpg
import pytest
import yaml

from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_common.bus import streams
from pml_common.contracts import catalog
from pml_common.storage.migrations import migrate, pending_migrations, read_migrations
from pml_common.storage.roles import find_roles, roles_of
from tests.deploy.manifests import manifests, of_kind
from tools.credentials import login_of
from tools.k8s.nats_users import users
from tools.k8s.rendering import ROOT

_NATS = ROOT / "deploy/k8s/components/nats"
_STORED = ("gateway", "learner", "registry")


def test_replicas_follow_the_lag_of_consumers_that_exist() -> None:
    streams_of = {each.durable: streams.stream_of(each) for each in catalog.CONSUMERS}
    namespace = of_kind("production", "Namespace")[0]["metadata"]["name"]
    scaled = of_kind("production", "ScaledObject")
    assert {one["spec"]["scaleTargetRef"]["name"] for one in scaled} == {
        "pml-executor",
        "pml-learner",
    }
    for one in scaled:
        service = one["spec"]["scaleTargetRef"]["name"].removeprefix("pml-")
        for trigger in one["spec"]["triggers"]:
            known = trigger["metadata"]
            assert known["stream"] == streams_of[known["consumer"]]
            assert known["consumer"].startswith(f"{service}-on-")
            assert (
                known["natsServerMonitoringEndpoint"] == f"pml-nats-headless.{namespace}.svc:8222"
            )
    followed = {each["metadata"]["consumer"] for one in scaled for each in one["spec"]["triggers"]}
    working = {
        each.durable
        for each in catalog.CONSUMERS
        if (
            each.service in ("executor", "learner")
            and each.message in (catalog.RUN_WORKFLOW, catalog.WORKFLOW_ACCEPTED)
        )
        or (each.service == "learner" and each.batch is not None)
    }
    assert followed == working


def test_scaled_deployments_leave_their_number_to_keda() -> None:
    for one in of_kind("production", "Deployment"):
        is_scaled = one["metadata"]["name"] in ("pml-executor", "pml-learner")
        assert is_scaled == ("replicas" not in one["spec"])


def test_users_of_nats_are_those_of_the_message_catalog() -> None:
    assert (_NATS / "users.conf").read_text(encoding="utf-8") == users(), "run make k8s-users"


def test_the_chart_of_nats_gets_the_same_users_and_restrictions() -> None:
    values = yaml.safe_load((_NATS / "values.yaml").read_text(encoding="utf-8"))
    assert values["config"]["jetstream"]["merge"] == {"sync_interval": "always"}
    assert values["config"]["merge"] == {"00$include": "../pml/users.conf"}
    [mount] = [each["value"] for each in values["container"]["patch"]]
    [volume] = [each["value"] for each in values["podTemplate"]["patch"]]
    assert (mount["mountPath"], mount["name"]) == ("/etc/pml", volume["name"])
    for container in (values["container"], values["reloader"]):
        context = container["merge"]["securityContext"]
        assert context["readOnlyRootFilesystem"] is True
        assert context["capabilities"] == {"drop": ["ALL"]}


def _statements() -> list[str]:
    [cluster] = of_kind("production", "Cluster")
    return cluster["spec"]["bootstrap"]["initdb"]["postInitApplicationSQL"]


def test_operator_gives_each_owner_and_each_login_a_password() -> None:
    secrets = {name: f"pml-postgres-{name}" for name in _STORED}
    secrets |= {login_of(name): f"pml-postgres-{name}-login" for name in _STORED}
    for overlay in ("dev", "production"):
        [cluster] = [one for one in manifests(overlay) if one["kind"] == "Cluster"]
        roles = cluster["spec"]["managed"]["roles"]
        assert {each["name"]: each["passwordSecret"]["name"] for each in roles} == secrets
        for each in roles:
            name = each["name"].partition("_")[0]
            granted = roles_of(name, name).all if each["name"] == login_of(name) else ()
            assert tuple(each.get("inRoles", ())) == granted
            assert each.get("inherit", True) is not bool(granted)


@pytest.mark.integration
async def test_roles_of_the_cluster_may_migrate_their_own_schemas_alone(postgres_dsn: str) -> None:
    admin = await asyncpg.connect(postgres_dsn)
    database = await admin.fetchval("SELECT current_database()")
    # The operator is a superuser; ours has what it creates only by asking for it.
    await admin.execute("SET createrole_self_grant = 'set, inherit'")
    try:
        for statement in _statements():
            await admin.execute(statement.replace("DATABASE pml", f'DATABASE "{database}"'))
        for name in _STORED:
            async with asyncio.timeout(PATIENCE_S):
                await _check_role(f"{postgres_dsn}?role={name}", name)
    finally:
        rows = await admin.fetch("SELECT rolname FROM pg_roles WHERE rolname = ANY($1)", _ROLES)
        for row in rows:
            await admin.execute(f"DROP OWNED BY {row['rolname']} CASCADE")
        for row in rows:
            await admin.execute(f"DROP ROLE {row['rolname']}")
        await admin.close()


_ROLES = [
    *_STORED,
    *(role for name in _STORED for role in (*roles_of(name, name).all, login_of(name))),
]


async def _check_role(dsn: str, name: str) -> None:
    migrations = read_migrations(f"pml_{name}")
    serving = dsn.replace(f"role={name}", f"role={login_of(name)}")
    every = [each.name for each in migrations]
    assert await pending_migrations(serving, name, migrations) == every
    assert await migrate(dsn, name, migrations)
    assert await pending_migrations(dsn, name, migrations) == []
    assert await pending_migrations(serving, name, migrations) == []
    assert (await find_roles(serving, name)).batch == f"{name}_{name}_batch"
    other = "learner" if name == "gateway" else "gateway"
    for user, schema in ((dsn, other), (serving, other), (serving, name)):
        session = await asyncpg.connect(user)
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await session.execute(f"CREATE TABLE {schema}.mine (n int)")
        await session.close()
