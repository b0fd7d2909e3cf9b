"""Whether an endpoint keeps to the early protocol: bytes out, bytes in, one verdict for each requirement (Z18-…).

The driver (`talk`) uses plain sockets and the codecs, none of the machines it may have to judge. A check is a short
function that says which requirement it is about; `runner` runs them all. Nothing here knows how the endpoint is made:
it may be any implementation that accepts sessions.
"""

from elea.conformance.registry import CHECKS, Check, Failed, NotApplicable, Outcome, Verdict
from elea.conformance.runner import run_checks
from elea.conformance.talk import Endpoint, Talk

__all__ = ["CHECKS", "Check", "Endpoint", "Failed", "NotApplicable", "Outcome", "Talk", "Verdict", "run_checks"]
