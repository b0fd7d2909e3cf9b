"""Settings of every property test: no deadline, as the machines differ; the same examples each time in CI."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

COMMON = {"deadline": None, "suppress_health_check": (HealthCheck.too_slow, HealthCheck.data_too_large)}

settings.register_profile("dev", max_examples=100, **COMMON)  # type: ignore[arg-type]
settings.register_profile("ci", max_examples=100, derandomize=True, **COMMON)  # type: ignore[arg-type]
settings.register_profile("again", max_examples=30, **COMMON)  # type: ignore[arg-type] # what has passed before, compiled
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") == "true" else "dev"))
