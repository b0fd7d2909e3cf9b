"""The file that `elea pipeline new` writes: everything a first pipeline needs, and comments on the rest."""

from __future__ import annotations

from typing import Final

__all__ = ["starter"]

_TEXT: Final = '''\
# A pipeline: samples of a broker's log -> tables, and results back into the data space.
#
#   elea broker --store store --persist 'myhouse/**'       a broker that keeps the samples (another terminal)
#   elea put myhouse/floor/1/room/2/LightStatus '{"on": true, "brightness": 80}'
#   elea pipeline check NAME.toml                          is the file right?
#   elea pipeline plan  NAME.toml                          what flows where
#   elea pipeline run   NAME.toml                          run it; ctrl-C ends it, run goes on where it ended
#
# Every key: docs/pipelines.md. Paths are relative to this file.

[pipeline]
name = "NAME"                          # also names cursors and transactions: with another name all is read again
checkpoints = "state"                  # what Spark has done; with it a restart loses and repeats nothing
trigger = "1 second"                   # how often; "available now" = one run to the end of what is there
connect = "tcp/127.0.0.1:7447"         # the broker, for all sources and publishes

# -- sources: what is read ---------------------------------------------------------------------------------------------

[source.lights]
keyexpr = "myhouse/floor/*/room/*/LightStatus"
format = "json"                        # raw (default), json, arrow: decoded into the column `value`
schema = "on BOOLEAN, brightness INT"  # fields of `value`; a payload that does not fit stands in `_corrupt`
watermark = "10 seconds"               # how late a sample may be and still count in a window
start = "earliest"                     # or "latest", or a time: "2026-01-31T12:00:00Z"

# A table to join with: the newest sample of each key, read when the run starts.
# [source.rooms]
# keyexpr = "myhouse/floor/*/room/*/Name"
# as_of = "now()"

# -- steps: SQL over sources and steps ---------------------------------------------------------------------------------

[step.light_status]
sql = """
SELECT key, split(key, '/')[2] AS floor, split(key, '/')[4] AS room, value.on, value.brightness, timestamp
FROM lights
WHERE kind = 'PUT' AND value IS NOT NULL
"""

[step.floors]                          # how bright each floor is, every ten seconds
sql = """
SELECT window.start AS since, floor, count(*) AS samples, avg(brightness) AS brightness
FROM light_status
GROUP BY window(timestamp, '10 seconds'), floor
"""

[step.alerts]
sql = """
SELECT concat('myhouse/alerts/floor/', floor, '/room/', room) AS key, brightness, timestamp AS since
FROM light_status
WHERE brightness > 90
"""

# -- tables: what is stored (Delta: DuckDB, Polars, pandas and Spark read it) ------------------------------------------

[table.bronze]                         # everything, as it came
from = "lights"
path = "tables/bronze"
retention = "7 days"                   # how long old versions of the table stay readable

[table.silver]
from = "light_status"
path = "tables/silver"
expect = [                             # rows that break a rule: quarantine (tables/silver_quarantine), drop or fail
  { name = "brightness is a percentage", check = "brightness BETWEEN 0 AND 100", otherwise = "quarantine" },
]

[table.gold]
from = "floors"
path = "tables/gold"

# -- publishes: rows back into the data space --------------------------------------------------------------------------

[publish.bright]                       # elea sub 'myhouse/alerts/**'
from = "alerts"                        # a column `key`; the others are packed into the payload
format = "json"
'''


def starter(name: str) -> str:
    """The text of a pipeline called `name`, which is right as it stands."""
    return _TEXT.replace("NAME", name)
