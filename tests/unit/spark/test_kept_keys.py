"""Keys that no storage keeps: told, with the logs that there are."""

from __future__ import annotations

from typing import Any

import pytest

from elea.model.errors import NoLog
from elea.spark.logs import Kept, Logs
from elea.spark.options import ReadOptions

HOME = {"name": "home", "key_expr": "home/**", "end": 5}
DEFAULT = {"name": "default", "key_expr": "**", "end": 5}


def judged(keys: str, *told: dict[str, Any], kept: tuple[str, ...]) -> None:
    """What is made of the answer of brokers, without any."""
    logs = object.__new__(Logs)
    logs._options = ReadOptions.parse({"connect": "tcp/a:1", "keyexpr": keys})
    logs.kept = {name: Kept(name, "**", None) for name in kept}
    logs._judge(list(told))


def test_no_log_at_all_is_an_error_that_names_those_there_are() -> None:
    with pytest.raises(NoLog, match=r"keeps keys of car/\*\*; there are: home \(home/\*\*\); start the broker"):
        judged("car/**", HOME, kept=())
    with pytest.raises(NoLog, match="there is none"):
        judged("car/**", kept=())


def test_keys_of_no_storage_are_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    judged("home/1,car/**", HOME, kept=("home",))
    assert caplog.messages == ["no storage keeps car/**: logs=home (home/**)"]

    caplog.clear()
    judged("car/**", HOME, DEFAULT, kept=("default",))
    assert "what was put there with a durability is in default" in caplog.text


def test_keys_that_are_kept_are_not(caplog: pytest.LogCaptureFixture) -> None:
    judged("home/1", HOME, DEFAULT, kept=("home", "default"))

    assert caplog.messages == []
