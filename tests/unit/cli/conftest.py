"""Runs the command in this process, with its streams caught."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import NamedTuple

import pytest

from elea.cli import main


class Result(NamedTuple):
    status: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


Elea = Callable[..., Result]


@pytest.fixture
def elea(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Elea:
    """`elea("decode", "--json", stdin=b"04")` runs the command and returns what it did."""

    def run(*words: str, stdin: bytes = b"") -> Result:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        status = main(list(words))
        caught = capsys.readouterr()
        return Result(status, caught.out, caught.err)

    return run
