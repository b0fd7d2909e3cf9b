"""What a configuration says about TLS; apart from `elea.io.tls`, whose library takes 5 MB that few programs need."""

from __future__ import annotations

from typing import Final

from elea.io.locator import Locator
from elea.model.errors import ConfigError
from elea.model.values import replaced, value_class

__all__ = ["TlsSettings"]

_TLS_CONFIG: Final = {
    "root_ca_certificate_file": "root_ca_certificate",
    "listen_private_key_file": "listen_private_key",
    "listen_certificate_file": "listen_certificate",
    "connect_private_key_file": "connect_private_key",
    "connect_certificate_file": "connect_certificate",
    "enable_mtls": "enable_mtls",
    "verify_name_on_connect": "verify_name_on_connect",
}
_SWITCHES: Final = ("enable_mtls", "verify_name_on_connect")


@value_class
class TlsSettings:
    """Files and switches of TLS; the names are those of eclipse-zenoh's configuration (`transport/link/tls`)."""

    root_ca_certificate: str | None = None
    listen_private_key: str | None = None
    listen_certificate: str | None = None
    enable_mtls: bool = False
    connect_private_key: str | None = None
    connect_certificate: str | None = None
    verify_name_on_connect: bool = True

    def for_locator(self, locator: Locator) -> TlsSettings:
        """These settings with what the locator's config says instead."""
        changes: dict[str, str | bool] = {}
        for key, name in _TLS_CONFIG.items():
            value = locator.setting(key)
            if value is None:
                continue
            if name in _SWITCHES:
                if value not in ("true", "false"):
                    raise ConfigError(f"{locator.wire}#{key}", f"{value!r} is not a switch", "write true or false")
                changes[name] = value == "true"
            else:
                changes[name] = value
        return replaced(self, **changes)
