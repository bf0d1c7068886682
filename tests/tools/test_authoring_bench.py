"""The tasks of the authoring benchmark."""

from bench.authoring import ANEW, TOLD, UNTOLD, tasks


def test_every_task_has_a_first_attempt_in_both_rounds() -> None:
    found = list(tasks())
    assert len(found) == len({task.intent for task in found}) == 40
    assert len({task.again for task in found} - {task.intent for task in found}) == 40
    known = {name for of_attempt in (*UNTOLD, *TOLD, *ANEW) for name in of_attempt}
    for task in found:
        assert {"first", "anew"} <= set(task.attempts)
        assert set(task.attempts) <= known
        assert all("return " in code for code in task.attempts.values())
