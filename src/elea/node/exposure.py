"""Whom a broker lets in: where it listens beyond its own machine and asks nobody who he is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from elea.io.addresses import is_loopback
from elea.io.locator import Locator
from elea.io.tls_settings import TlsSettings
from elea.model.logger import logger

if TYPE_CHECKING:
    from elea.node.links import LinkSettings

__all__ = ["exposed", "warn_if_exposed"]

_log = logger("elea.node")


def exposed(locators: Sequence[str], settings: LinkSettings) -> list[str]:
    """The locators at which other machines get in without a password or a certificate.

    A unix socket is not among them: the permissions of its file say who may use it.
    """
    if settings.users is not None:
        return []
    found = [Locator.parse(text) for text in locators]
    return [one.wire for one in found if not (one.path or is_loopback(one.host) or _asks_certificate(one, settings))]


def warn_if_exposed(locators: Sequence[str], settings: LinkSettings) -> None:
    """Say so in one line, with what closes it."""
    found = exposed(locators, settings)
    if found:
        _log.warning(
            "no authentication, every machine that reaches this broker may read and write: listening=%s "
            "hint=set transport/auth/usrpwd/dictionary_file (passwords) or transport/link/tls/enable_mtls "
            "(certificates), or listen on this machine only: -l tcp/127.0.0.1:7447",
            " ".join(found),
        )


def _asks_certificate(locator: Locator, settings: LinkSettings) -> bool:
    return locator.protocol == "tls" and (settings.tls or TlsSettings()).for_locator(locator).enable_mtls
