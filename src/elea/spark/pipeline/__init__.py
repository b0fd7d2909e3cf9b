"""Pipelines described in a file: from the data space to tables and back; `elea pipeline` runs them.

::

    spec = elea.spark.pipeline.specreader.read("fleet.toml")
    report = elea.spark.pipeline.runner.run(spec)

Importing this needs neither Spark nor Java; reading, checking and drawing a file do not either.
"""

from __future__ import annotations

__all__: list[str] = []
