"""Sessions of the processes that Spark runs: one per process and place, kept as long as the process.

Spark uses Python workers for many tasks; to connect anew for each would cost more than a small task does.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Final

from elea.model.errors import ConfigError, EleaError, OperationTimeout, SessionError
from elea.spark.options import CONNECT, Access

if TYPE_CHECKING:
    from elea.api.config import Config
    from elea.api.session import Session

__all__ = ["answered", "close_all", "config_of", "session_of", "settle", "silent", "where"]

_open: Final[dict[tuple[int, str], Session]] = {}
_opening: Final = threading.Lock()


def session_of(access: Access) -> Session:
    """The session of this process for these options; opened if there is none, or if it was closed.

    Raises:
        SessionError: nobody answers there; the text says where, and what to do.
        ConfigError: the options do not make a configuration.
    """
    import elea

    config = config_of(access)
    key = os.getpid(), str(config)  # a process that was forked must not use the sockets of its parent
    with _opening:
        found = _open.get(key)
        if found is not None and not found.is_closed():
            return found
        try:
            made = elea.open(config)
        except ConfigError:
            raise
        except EleaError as error:
            raise SessionError(
                f"no broker was reached at {where(access)} within {access.connect_timeout_ms} ms: {error}; "
                "start one with `elea broker`, or name another with the option connect"
            ) from error
        _open[key] = made
        return made


@cache
def settle() -> None:
    """Call it when a process of Spark has all modules and its session; the second time nothing happens.

    Workers collect garbage after every task, and those that plan after every plan. All that they will have as long as
    they live is not looked through again, which would take up to a tenth of a second each time.
    """
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    if spec is not None and spec.name == "pyspark.daemon":
        gc.freeze()


@contextmanager
def answered(access: Access) -> Iterator[None]:
    """Say what to do when a broker that was there has not answered for too long.

    Raises:
        SessionError: it has not.
    """
    try:
        yield
    except OperationTimeout as error:
        raise silent(access) from error


def silent(access: Access) -> SessionError:
    """What to raise if somebody is linked and says nothing."""
    return SessionError(
        f"the broker at {where(access)} has not answered for {access.request_timeout_ms} ms; see whether it runs, "
        "then start the query again: a stream goes on from its checkpoint. requestTimeoutMs is how long it waits"
    )


def where(access: Access) -> str:
    """The locators, for people."""
    return ", ".join(access.connect) if access.connect != (CONNECT,) or access.config is None else access.config[:200]


def config_of(access: Access) -> Config:
    """The configuration of a session; what `zenoh.` options say goes before what `config` says."""
    from elea.api.config import Config

    if access.config is None:
        config = Config()
    elif access.config.lstrip().startswith("{"):
        config = Config.from_json5(access.config)
    else:
        config = Config.from_file(access.config)
    if access.config is None:
        config.insert_json5("mode", '"client"')
        config.insert_json5("scouting/multicast/enabled", "false")
    if access.config is None or access.connect != (CONNECT,):
        config.insert_json5("connect/endpoints", json.dumps(access.connect))
    config.insert_json5("connect/timeout_ms", str(access.connect_timeout_ms))
    config.insert_json5("connect/exit_on_failure", "true")
    for path, text in access.passed_on:
        config.insert_json5(path, _json5(text))
    return config


def _json5(text: str) -> str:
    """A value as JSON5: as it is if it is some, else as a text."""
    from elea.api.json5 import parse

    try:
        parse(text, "option")
    except ConfigError:
        return json.dumps(text)
    return text


@atexit.register
def close_all() -> None:
    """Close the sessions of this process."""
    with _opening:
        for pid, text in list(_open):
            if pid == os.getpid():
                _open.pop((pid, text)).close()
