"""Roles of a schema whose rows are kept apart by scope (row-level security).

The schema's owner runs migrations and nothing else. Queries of one scope run as
`<owner>_<schema>_app`, those that also read what others share as `<owner>_<schema>_reach`, work
over many scopes as `<owner>_<schema>_batch`; none of them owns anything or may log in. A service
logs in as `<owner>_<schema>_login`, or by another name, which owns nothing either and may take on
these three. Their names contain the owner's, since roles belong to the whole server: two
deployments on it share none.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import asyncpg

from pml_common.storage.errors import RolesMissing

_ATTEMPTS = 5
_ROLE = """
SELECT rolsuper OR rolbypassrls AS is_unbound, pg_has_role(current_user, oid, 'SET') AS may_be_set
FROM pg_roles
WHERE rolname = $1
"""
_EXCESS = """
SELECT nullif(
    concat_ws(
        ' and ',
        CASE WHEN rolsuper THEN 'is a superuser' END,
        CASE WHEN rolbypassrls THEN 'bypasses row-level security' END,
        CASE WHEN rolcreaterole THEN 'may create roles' END,
        CASE WHEN rolcreatedb THEN 'may create databases' END,
        'is a member of ' || (
            SELECT string_agg(rolname, ', ' ORDER BY rolname)
            FROM pg_roles AS other
            WHERE pg_has_role(pg_roles.oid, other.oid, 'MEMBER')
                AND other.oid <> pg_roles.oid AND other.rolname <> ALL ($1)
        ),
        CASE WHEN EXISTS (
            SELECT FROM pg_shdepend
            WHERE refclassid = 'pg_authid'::regclass AND refobjid = pg_roles.oid AND deptype = 'o'
        ) THEN 'owns something' END
    ),
    ''
)
FROM pg_roles
WHERE rolname = current_user
"""
_OWNER = "SELECT pg_get_userbyid(nspowner) FROM pg_namespace WHERE nspname = $1"
_READABLE = """
SELECT
    has_schema_privilege($1, relnamespace, 'USAGE') AND has_table_privilege($1, oid, 'SELECT')
FROM pg_class
WHERE relname = $3 AND relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = $2)
"""
_UNGRANTED = """
SELECT role.rolname
FROM pg_roles AS role, pg_roles AS login
WHERE role.rolname = ANY ($1) AND login.rolname = $2 AND NOT pg_has_role(login.oid, role.oid, 'SET')
"""
_CONCURRENT = (
    asyncpg.DuplicateObjectError,
    asyncpg.UniqueViolationError,
    asyncpg.InternalServerError,  # "tuple concurrently updated"
)
"""Errors of a role that another service, perhaps of another database, makes at the same time."""


@dataclass(frozen=True)
class Roles:
    """Names of the roles without ownership, and of the login that may take them on."""

    application: str
    reach: str
    batch: str
    login: str

    @property
    def all(self) -> tuple[str, str, str]:
        """Every role that queries run as."""
        return self.application, self.reach, self.batch


def roles_of(owner: str, schema: str) -> Roles:
    """Return the roles of a schema; the migrations that grant them privileges name them alike."""
    return Roles(*(f"{owner}_{schema}_{kind}" for kind in ("app", "reach", "batch", "login")))


async def ensure_roles(session: asyncpg.Connection, schema: str) -> Roles:
    """Make the roles of an existing schema where they are missing, as its owner, grant them to the
    login, if there is one of that name, and return them. Raises RolesMissing where it may not."""
    roles = roles_of(await session.fetchval(_OWNER, schema), schema)
    attempt = 0
    while True:
        try:
            for role in roles.all:
                await _ensure(session, role)
            for row in await session.fetch(_UNGRANTED, list(roles.all), roles.login):
                await session.execute(_grant([row["rolname"]], roles.login))
        except asyncpg.InsufficientPrivilegeError as error:
            raise RolesMissing(advice(roles)) from error
        except _CONCURRENT:
            attempt += 1
            if attempt == _ATTEMPTS:
                raise
        else:
            return roles


async def _ensure(session: asyncpg.Connection, role: str) -> None:
    found = await session.fetchrow(_ROLE, role)
    if found is None:
        await session.execute(f"CREATE ROLE {quoted(role)} NOLOGIN")
    else:
        _require_bound(found, role)


def _require_bound(found: asyncpg.Record, role: str) -> None:
    if found["is_unbound"]:
        raise RolesMissing(
            f"row-level security does not hold for the role {role}: run as an administrator "
            f"ALTER ROLE {quoted(role)} NOSUPERUSER NOBYPASSRLS, then start again"
        )


async def find_roles(dsn: str, schema: str) -> Roles:
    """Return the roles of an existing schema. Raises RolesMissing where this user may not take them
    on, or may do more than that."""
    session = await asyncpg.connect(dsn, timeout=10.0)
    try:
        owner = await session.fetchval(_OWNER, schema)
        roles = roles_of(owner, schema)
        user = await session.fetchval("SELECT current_user")
        excess = await session.fetchval(_EXCESS, list(roles.all))
        if excess is not None:
            raise RolesMissing(
                f"the Postgres user {user} {excess}, but a service serves as one that owns nothing "
                f"and may do no more: {advice(roles)}, with {roles.login} in PML_POSTGRES_DSN"
            )
        for role in roles.all:
            found = await session.fetchrow(_ROLE, role)
            if found is None or not found["may_be_set"]:
                raise RolesMissing(
                    f"the Postgres user {user} may not take on the role {role}: "
                    + advice(roles, user)
                )
            _require_bound(found, role)
    finally:
        await session.close()
    return roles


async def may_read_migrations(session: asyncpg.Connection, schema: str, table: str) -> bool:
    """Take on the role of a schema in which the table of its migrations may be read, unless the
    session is its owner's. Returns whether that worked: schema, roles and table are there."""
    owner = await session.fetchval(_OWNER, schema)
    if owner is None:
        return False
    user = await session.fetchval("SELECT current_user")
    role = owner if owner == user else roles_of(owner, schema).application
    found = await session.fetchrow(_ROLE, role)
    if found is None or not found["may_be_set"]:
        return False
    if not await session.fetchval(_READABLE, role, schema, table):
        return False
    await session.execute(f"SET ROLE {quoted(role)}")
    return True


def advice(roles: Roles, login: str | None = None) -> str:
    """Say what an administrator has to run so that a service can log in."""
    create = " ".join(f"CREATE ROLE {quoted(role)} NOLOGIN;" for role in roles.all)
    made = login or roles.login
    log_in = "" if login else f" CREATE ROLE {quoted(made)} LOGIN PASSWORD '...';"
    return (
        f"run as an administrator, without those that exist, {create}{log_in} "
        f"{_grant(roles.all, made)}; then start again"
    )


def _grant(roles: Sequence[str], login: str) -> str:
    return f"GRANT {', '.join(map(quoted, roles))} TO {quoted(login)} WITH INHERIT FALSE, SET TRUE"


def quoted(identifier: str) -> str:
    """Quote an identifier."""
    return '"' + identifier.replace('"', '""') + '"'
