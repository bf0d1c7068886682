"""Alert rules: each has a severity, a page and tests, and the tests pass."""

import re
import shutil
import subprocess

import pytest
import yaml

from libs.pml_local.tests.support.patience import PATIENCE_S
from tests.telemetry.sources import ROOT, RUNBOOKS, TELEMETRY, rules

PROMTOOL = shutil.which("promtool")


def test_every_alert_says_how_severe_it_is_and_where_its_page_is() -> None:
    for rule in rules():
        assert rule["labels"]["severity"] in ("critical", "warning"), rule["alert"]
        assert rule["annotations"]["summary"]
        page = ROOT / rule["annotations"]["runbook_url"]
        assert page == RUNBOOKS / f"{rule['alert']}.md"


def test_every_alert_has_a_page_and_every_page_an_alert() -> None:
    assert {page.stem for page in RUNBOOKS.glob("*.md")} == {rule["alert"] for rule in rules()}
    for page in RUNBOOKS.glob("*.md"):
        text = page.read_text()
        assert text.startswith(f"# {page.stem}\n"), page.name
        looks = text.partition("## Look\n")[2].partition("## Do\n")
        assert re.search(r"```\w*\n.+?\n```", looks[0], re.DOTALL), (
            f"{page.name} has nothing to run"
        )
        assert looks[2].strip().startswith("- "), f"{page.name} has nothing to do"


def test_pages_refer_to_alerts_that_exist() -> None:
    alerts = {rule["alert"] for rule in rules()}
    for page in RUNBOOKS.glob("*.md"):
        assert set(re.findall(r"\bPml[A-Z]\w+", page.read_text())) <= alerts, page.name


def test_every_alert_is_tried_firing_and_quiet() -> None:
    tests = yaml.safe_load((TELEMETRY / "alerts_test.yml").read_text())["tests"]
    alerts = [rule["alert"] for rule in rules()]
    assert {test["name"] for test in tests} == {
        f"{alert} {how}" for alert in alerts for how in ("fires", "is quiet")
    }
    for test in tests:
        assert test["name"].partition(" ")[0] in test["promql_expr_test"][0]["expr"]


@pytest.mark.skipif(
    PROMTOOL is None,
    reason="PROMTOOL IS MISSING: alert rules were NOT tried (Debian package prometheus)",
)
def test_rules_do_what_their_tests_say() -> None:
    for command in (["check", "rules", "alerts.yml"], ["test", "rules", "alerts_test.yml"]):
        done = subprocess.run(
            [str(PROMTOOL), *command],
            cwd=TELEMETRY,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
