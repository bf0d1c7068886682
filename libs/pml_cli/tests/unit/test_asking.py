"""Questions to a person."""

import io

import pytest

from pml_cli.asking import confirm
from pml_cli.errors import CommandError


@pytest.mark.parametrize(
    ("typed", "answer"), [("y\n", True), ("YES\n", True), ("\n", False), ("what\nn\n", False)]
)
def test_a_question_is_asked_on_stderr_until_it_is_answered(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    typed: str,
    answer: bool,
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(typed))
    assert confirm("Really?") is answer
    said = capsys.readouterr()
    assert (said.out, said.err.count("Really? [y/N]: ")) == ("", typed.count("\n"))


def test_the_end_of_input_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    with pytest.raises(CommandError, match="aborted"):
        confirm("Really?")
