"""Runs checks against an endpoint, one after the other; what one finds never ends the others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module

from elea.conformance.registry import CHECKS, Check, Failed, NotApplicable, Outcome, Verdict
from elea.conformance.talk import Endpoint

__all__ = ["checks_of", "run_check", "run_checks"]


def checks_of(module: str = "all") -> list[Check]:
    """The checks of a module, or all."""
    for name in ("encoding", "sessions", "channels", "data", "discovery", "declaring", "query"):
        import_module(f"elea.conformance.{name}")
    return [one for one in CHECKS if module in ("all", one.module)]


def run_checks(endpoint: Endpoint, checks: Sequence[Check]) -> Iterator[Outcome]:
    """What each of them finds, as it does."""
    for one in checks:
        yield run_check(endpoint, one)


def run_check(endpoint: Endpoint, check: Check) -> Outcome:
    """What one check finds."""
    endpoint.transcript.clear()
    verdict, detail = Verdict.PASSED, ""
    try:
        if check.dialect is not None and check.dialect != endpoint.dialect:
            raise NotApplicable(f"only in {check.dialect}")
        if check.link is not None and (check.link == "stream") != endpoint.is_stream:
            raise NotApplicable(f"only over a {check.link} link")
        check.run(endpoint)
    except NotApplicable as error:
        verdict, detail = Verdict.NOT_APPLICABLE, str(error)
    except Failed as error:
        verdict, detail = Verdict.FAILED, str(error)
    except OSError as error:
        verdict, detail = Verdict.FAILED, f"no connection: {error}"
    finally:
        endpoint.end()
    transcript = tuple((arrow, packet.hex()) for arrow, packet in endpoint.transcript)
    return Outcome(check, verdict, detail, transcript)
