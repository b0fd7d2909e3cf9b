"""How Spark finds `format("zenoh.capture")`: it imports all modules called `pyspark_…` and asks for `DefaultSource`."""

from __future__ import annotations

from contextlib import suppress

__all__ = ["DefaultSource"]

# A module of this name that cannot be imported would break every Python data source of the user, not only ours.
with suppress(ImportError):
    from elea.spark.capture import ZenohCaptureSource as DefaultSource
