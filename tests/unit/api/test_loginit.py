"""Logging switched on as eclipse-zenoh's programs do it."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

import elea
from elea.api import loginit

NAMES = ("elea", "elea.io", "elea.node")


@pytest.fixture(autouse=True)
def _as_before(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("RUST_LOG", raising=False)
    loggers = [logging.getLogger(name) for name in NAMES]
    before = [(logger.level, logger.propagate, list(logger.handlers)) for logger in loggers]
    yield
    for logger, (level, propagate, handlers) in zip(loggers, before, strict=True):
        logger.setLevel(level)
        logger.propagate = propagate
        logger.handlers[:] = handlers


def test_without_the_variable_nothing_is_configured() -> None:
    elea.try_init_log_from_env()

    assert logging.getLogger("elea").handlers == []
    assert logging.getLogger("elea").propagate


def test_a_level_is_given_where_the_variable_is_not(capsys: pytest.CaptureFixture[str]) -> None:
    elea.init_log_from_env_or("info")
    logging.getLogger("elea.node").info("session opened: node=%s", "12")
    logging.getLogger("elea.node").debug("not this")

    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1
    assert lines[0].endswith("elea.node: session opened: node=12")
    assert " INFO " in lines[0]


def test_the_variable_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUST_LOG", "debug")
    elea.init_log_from_env_or("error")

    assert logging.getLogger("elea").level == logging.DEBUG


def test_the_first_call_counts() -> None:
    elea.init_log_from_env_or("error")
    elea.init_log_from_env_or("debug")

    assert logging.getLogger("elea").level == logging.ERROR
    assert len(logging.getLogger("elea").handlers) == 1


@pytest.mark.parametrize(
    ("text", "levels"),
    [
        ("warn", {"elea": logging.WARNING}),
        ("WARN, elea.io=trace", {"elea": logging.WARNING, "elea.io": loginit.TRACE}),
        ("zenoh::net=debug", {"elea": logging.DEBUG}),
        ("zenoh=info,tokio=debug", {"elea": logging.INFO}),
        ("elea::io=4", {"elea.io": logging.DEBUG}),
        ("elea.io", {"elea.io": loginit.TRACE}),
        ("off", {"elea": loginit.OFF}),
        ("", {}),
    ],
)
def test_directives(text: str, levels: dict[str, int]) -> None:
    assert loginit._levels(text) == levels


def test_a_wrong_directive_is_named_and_passed_over(capsys: pytest.CaptureFixture[str]) -> None:
    assert loginit._levels("elea=loud,info") == {"elea": logging.INFO}
    assert "ignoring `elea=loud`" in capsys.readouterr().err


def test_a_target_alone_switches_on_that_one_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUST_LOG", "elea.io=debug")
    elea.try_init_log_from_env()

    assert logging.getLogger("elea.io").isEnabledFor(logging.DEBUG)
    assert not logging.getLogger("elea.node").isEnabledFor(logging.ERROR)
