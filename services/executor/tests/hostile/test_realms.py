"""Programs written against realms: none gets an object of the outer side, affects its Worker, or is
noticed by the next program there.

`realms.txt` contains them like `programs/*.txt`; without `=> ends` a program returns "held". A line
`---` precedes a second one, which runs in the next realm and returns "held", too.
"""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from pml_common.contracts.executor import RunFinished
from pml_common.testing.memory_bus import MemoryBus
from pml_executor.settings import ExecutorSettings
from services.executor.tests.hostile.programs import GENEROUS_S, Hostile, programs_in
from services.executor.tests.support.builders import make_command
from services.executor.tests.support.harness import finish, make_dependencies
from services.executor.tests.support.memory_tools import MemoryTools
from services.executor.tests.support.realms import RealmPool, realm_pool

pytestmark = pytest.mark.integration

ATTACKS = programs_in(Path(__file__).with_name("realms.txt"), ends="fine")
TOOLS = (
    "const outside = (value) => { let top = value; for (let up = value; up !== null;"
    " up = Reflect.getPrototypeOf(up)) top = up;"
    ' return top !== Object.prototype && Object.hasOwn(top, "hasOwnProperty"); };'
    "const parts = (value) => [value, ...Reflect.ownKeys(value).flatMap((key) =>"
    " { const found = Reflect.getOwnPropertyDescriptor(value, key);"
    " return [found?.value, found?.get, found?.set]; })];"
    "const held = (...values) => values.filter((value) => Object(value) === value).flatMap(parts)"
    ".filter((value) => Object(value) === value).some(outside) ? 'out' : 'held';"
    "const thrown = (f) => { try { return f(); } catch (error) { return error; } };"
    "const over = () => over() + 1;"
    "const deeply = (f) => { const found = []; let left = 200; const down = () => {"
    " try { down(); } catch (error) { found.push(error); }"
    " if (left-- > 0) found.push(thrown(f)); }; thrown(down); return found.slice(0, 1000); };"
)
"""Functions for the programs, on their first line."""


@pytest.fixture(scope="module")
async def pool() -> AsyncGenerator[RealmPool]:
    async with realm_pool(ExecutorSettings()) as pool:
        yield pool


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.wants)
async def test_the_realm_holds_and_the_next_one_is_as_new(attack: Hostile, pool: RealmPool) -> None:
    first, _, second = attack.code.partition("\n---\n")
    workers = pool.workers
    fact = await run(pool, first, attack.timeout_s("realm"))
    if fact.error is None:
        assert fact.result == "held"
    assert (fact.error.kind if fact.error else "fine") in attack.expected("realm"), fact
    after = await run(pool, second or 'return typeof c === "undefined" ? "held" : "out";')
    assert (after.error, after.result) == (None, "held")
    assert pool.workers == workers, "a program ran in no realm"


async def run(pool: RealmPool, code: str, timeout_s: float = GENEROUS_S) -> RunFinished:
    """Run a program in a realm."""
    deps = make_dependencies(MemoryBus(), pool, MemoryTools())
    return await finish(make_command(TOOLS + code, timeout_s=timeout_s), deps)


def test_there_are_at_least_sixty_of_them() -> None:
    assert len(ATTACKS) >= 60
