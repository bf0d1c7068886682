"""The methods of data, as the sandbox's JavaScript has them."""

import json
import subprocess

import pytest

from pml_analysis.names.method_names import DATA_METHODS
from services.analyzer.tests.support.recorder import DENO

pytestmark = pytest.mark.integration

PROGRAM = """
const of = [String, Array, Number, Object].map((one) => one.prototype);
const names = of.flatMap((one) => Object.getOwnPropertyNames(one).filter((name) =>
  name !== "constructor" && !name.startsWith("__") &&
  typeof Object.getOwnPropertyDescriptor(one, name).value === "function"));
console.log(JSON.stringify(names));
"""


def test_every_method_of_data_is_known() -> None:
    told = subprocess.run([DENO, "eval", PROGRAM], check=True, capture_output=True, text=True)
    assert set(json.loads(told.stdout)) - DATA_METHODS == set()
