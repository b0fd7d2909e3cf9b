"""How Spark finds `format("zenoh")`: it imports every module called `pyspark_…` and asks for its `DefaultSource`."""

from __future__ import annotations

from contextlib import suppress

__all__ = ["DefaultSource"]

# A module of this name that cannot be imported would break every Python data source of the user, not only ours.
with suppress(ImportError):
    from elea.spark.source import ZenohDataSource as DefaultSource
