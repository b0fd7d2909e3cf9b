"""The system's poller and what stands in for it where there is none."""

from __future__ import annotations

import os
import select
import selectors

import pytest

POLLERS = ["epoll", "selector", "selector without eventfd"]


def choose(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Have pollers that are made in this test be of one kind."""
    if name == "epoll":
        if not hasattr(select, "epoll"):
            pytest.skip("the system has no epoll")
        return
    monkeypatch.delattr(select, "epoll", raising=False)
    monkeypatch.setattr(selectors, "DefaultSelector", selectors.PollSelector)
    if name != "selector":
        monkeypatch.delattr(os, "eventfd", raising=False)
