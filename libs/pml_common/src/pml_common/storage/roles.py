"""Roles of a schema whose rows are kept apart by scope (row-level security).

The schema's owner runs migrations and nothing else. Queries of one scope run as
`<owner>_<schema>_app`, those that also read what others share as `<owner>_<schema>_reach`, work
over many scopes as `<owner>_<schema>_batch`; none of them owns anything or may log in. Their names
contain the owner's, since roles belong to the whole server: two deployments on it share none.
"""

from dataclasses import dataclass

import asyncpg

from pml_common.storage.errors import RolesMissing

_ATTEMPTS = 5
_ROLE = """
SELECT rolsuper OR rolbypassrls AS is_unbound, pg_has_role(current_user, oid, 'SET') AS may_be_set
FROM pg_roles
WHERE rolname = $1
"""
_OWNER = "SELECT pg_get_userbyid(nspowner) FROM pg_namespace WHERE nspname = $1"
_CONCURRENT = (
    asyncpg.DuplicateObjectError,
    asyncpg.UniqueViolationError,
    asyncpg.InternalServerError,  # "tuple concurrently updated"
)
"""Errors of a role that another service, perhaps of another database, makes at the same time."""


@dataclass(frozen=True)
class Roles:
    """Names of the roles without ownership."""

    application: str
    reach: str
    batch: str

    @property
    def all(self) -> tuple[str, str, str]:
        """Every role."""
        return self.application, self.reach, self.batch


def roles_of(owner: str, schema: str) -> Roles:
    """Return the roles of a schema; the migrations that grant them privileges name them alike."""
    return Roles(*(f"{owner}_{schema}_{kind}" for kind in ("app", "reach", "batch")))


async def ensure_roles(session: asyncpg.Connection, schema: str) -> None:
    """Make the roles of an existing schema where they are missing, and let the session's user take
    them on. Raises RolesMissing where it may not."""
    roles = roles_of(await session.fetchval(_OWNER, schema), schema)
    for role in roles.all:
        await _ensure(session, role, roles)


async def find_roles(dsn: str, schema: str) -> Roles:
    """Return the roles of an existing schema. Raises RolesMissing where this user may not take them
    on."""
    session = await asyncpg.connect(dsn, timeout=10.0)
    try:
        roles = roles_of(await session.fetchval(_OWNER, schema), schema)
        for role in roles.all:
            found = await session.fetchrow(_ROLE, role)
            if found is None or not found["may_be_set"]:
                raise RolesMissing(advice(await session.fetchval("SELECT current_user"), roles))
    finally:
        await session.close()
    return roles


async def _ensure(session: asyncpg.Connection, role: str, roles: Roles) -> None:
    for attempt in range(_ATTEMPTS):
        try:
            found = await session.fetchrow(_ROLE, role)
            if found is None:
                await session.execute(f"CREATE ROLE {quoted(role)} NOLOGIN")
                found = await session.fetchrow(_ROLE, role)
            if found is not None and found["is_unbound"]:
                raise RolesMissing(
                    f"row-level security does not hold for the role {role}: run as an "
                    f"administrator ALTER ROLE {quoted(role)} NOSUPERUSER NOBYPASSRLS, then start "
                    "again"
                )
            if found is None or not found["may_be_set"]:
                await session.execute(
                    f"GRANT {quoted(role)} TO CURRENT_USER WITH INHERIT FALSE, SET TRUE"
                )
        except asyncpg.InsufficientPrivilegeError as error:
            user = await session.fetchval("SELECT current_user")
            raise RolesMissing(advice(user, roles)) from error
        except _CONCURRENT:
            if attempt + 1 == _ATTEMPTS:
                raise
        else:
            return


def advice(user: str, roles: Roles) -> str:
    """Say what an administrator has to run for a user who may not do it."""
    every = ", ".join(map(quoted, roles.all))
    create = " ".join(f"CREATE ROLE {quoted(role)} NOLOGIN;" for role in roles.all)
    return (
        f"the Postgres user {user} may not take on the roles {', '.join(roles.all)}: run as an "
        f"administrator, without those that exist, {create} "
        f"GRANT {every} TO {quoted(user)} WITH INHERIT FALSE, SET TRUE; then start again"
    )


def quoted(identifier: str) -> str:
    """Quote an identifier."""
    return '"' + identifier.replace('"', '""') + '"'
