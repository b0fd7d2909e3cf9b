"""What can go wrong with a link, typed; each text says what happened and what to try.

LinkError
  LocatorError(text, problem, hint) (ValueError)     UnsupportedLink
  CannotConnect(locator, problem, hint)              ConnectRefused · ConnectTimeout (TimeoutError) · Unreachable
                                                     · NameUnknown · CertificateError(what, file)
  CannotListen(locator, problem, hint)
  LinkClosed(remote, problem, reason)                LinkStalled · CertificateRefused · BatchTooLarge(size, limit)
"""

from __future__ import annotations

from typing import Final

from elea.model.errors import EleaError

__all__ = [
    "REASON_GENERIC",
    "REASON_UNRESPONSIVE",
    "BatchTooLarge",
    "CannotConnect",
    "CannotListen",
    "CertificateError",
    "CertificateRefused",
    "ConnectRefused",
    "ConnectTimeout",
    "LinkClosed",
    "LinkError",
    "LinkStalled",
    "LocatorError",
    "NameUnknown",
    "Unreachable",
    "UnsupportedLink",
]

REASON_GENERIC: Final = 0
"""Close reason of an ordinary end (spec zenoh-1 4.3)."""

REASON_UNRESPONSIVE: Final = 6
"""Close reason when a message that must not be dropped found no room in time."""


class LinkError(EleaError):
    """A link could not be made or did not last."""


class LocatorError(LinkError, ValueError):
    """Text that is not a locator this node can use."""

    def __init__(self, text: str, problem: str, hint: str = "") -> None:
        super().__init__(f"locator {text!r}: {problem}" + (f"; {hint}" if hint else ""))
        self.text = text
        self.problem = problem
        self.hint = hint


class UnsupportedLink(LocatorError):
    """A locator that is well formed but of a kind of link this node does not speak."""


class CannotConnect(LinkError):
    """No link to `locator` could be made."""

    def __init__(self, locator: str, problem: str, hint: str = "") -> None:
        super().__init__(f"cannot connect to {locator}: {problem}" + (f"; {hint}" if hint else ""))
        self.locator = locator
        self.problem = problem
        self.hint = hint


class ConnectRefused(CannotConnect):
    """The machine answered, but nobody listens there."""


class ConnectTimeout(CannotConnect, TimeoutError):
    """Nobody answered in the time given."""


class Unreachable(CannotConnect):
    """There is no way to that address, or the address cannot be used here."""


class NameUnknown(CannotConnect):
    """The host name has no address."""


class CertificateError(CannotConnect):
    """TLS cannot start: `what` is at fault, in `file` where it comes from one."""

    def __init__(
        self, locator: str, problem: str, hint: str = "", *, what: str = "certificate", file: str = ""
    ) -> None:
        super().__init__(locator, f"{what}{f' {file}' if file else ''}: {problem}", hint)
        self.what = what
        self.file = file


class CannotListen(LinkError):
    """Nothing can be accepted at `locator`."""

    def __init__(self, locator: str, problem: str, hint: str = "") -> None:
        super().__init__(f"cannot listen on {locator}: {problem}" + (f"; {hint}" if hint else ""))
        self.locator = locator
        self.problem = problem
        self.hint = hint


class LinkClosed(LinkError):
    """The link has ended: closed here, closed by the other side, or broken. `reason` is the close reason to report."""

    def __init__(self, remote: str, problem: str = "closed", reason: int = REASON_GENERIC) -> None:
        super().__init__(f"link to {remote}: {problem}")
        self.remote = remote
        self.problem = problem
        self.reason = reason


class LinkStalled(LinkClosed):
    """The other side took nothing for so long that the link was closed."""

    def __init__(self, remote: str, waited: float) -> None:
        super().__init__(
            remote,
            f"no room after {waited:g} s for a message that must not be dropped; the receiver is too slow or stopped",
            REASON_UNRESPONSIVE,
        )
        self.waited = waited


class CertificateRefused(LinkClosed):
    """The other side ended TLS because of our certificate, after our half of the handshake was done."""


class BatchTooLarge(LinkClosed):
    """A batch above the limit of the link; behind it the stream cannot be trusted."""

    def __init__(self, remote: str, size: int, limit: int) -> None:
        super().__init__(remote, f"batch of {size} bytes is above the limit of {limit}", 2)
        self.size = size
        self.limit = limit


def worse(lost: EleaError | None, error: EleaError | None) -> EleaError | None:
    """Of several links that ended, one that was given up for taking nothing: who must not lose a sample is told."""
    return lost if error is None or isinstance(lost, LinkStalled) else error
