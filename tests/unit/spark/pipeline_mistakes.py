"""Pipeline files with one mistake each; a table, so lines are as long as they must be."""
# ruff: noqa: E501

from __future__ import annotations

__all__ = ["GOOD", "HEAD", "MISTAKES", "WARNINGS", "step", "table"]

HEAD = '[pipeline]\nname = "fleet"\n'
SOURCE = '[source.lights]\nkeyexpr = "myhouse/**"\nformat = "json"\nschema = "on BOOLEAN, brightness INT"\n'
TABLE = '[table.bronze]\nfrom = "lights"\npath = "tables/bronze"\n'
WATERMARK = 'watermark = "10 seconds"\n'
GOOD = HEAD + SOURCE + TABLE
RULE = 'expect = [ { name = "dark", check = "value.brightness < 90" } ]\n'


def table(step: str, more: str = "") -> str:
    return f'[table.result]\nfrom = "{step}"\npath = "tables/result"\n{more}'


def step(sql: str, name: str = "step1") -> str:
    return f'[step.{name}]\nsql = """\n{sql}\n"""\n'


def publish(sql: str, more: str = "") -> str:
    return GOOD + step(sql) + f'[publish.alerts]\nfrom = "step1"\n{more}'


# Each: what it is about, the file with `<<<` in the line that is meant, and parts of the cause and of the fix.
MISTAKES = [
    # -- TOML
    ("a text without quotes", HEAD + "trigger = 2 seconds  # <<<", "no TOML", "quotes"),
    ("a word without quotes", GOOD.replace('"json"', "json  # <<<"), "no TOML", "quotes"),
    ("quotes not closed", HEAD + 'trigger = "2 seconds # <<<\n' + SOURCE, "no TOML", "close the quotes"),
    ("a table not closed", HEAD + "[source.lights # <<<\n", "no TOML", "[source.lights]"),
    ("a table twice", GOOD + "[source.lights]  # <<<\n", "twice", "another name"),
    ("a key twice", GOOD + 'path = "x"  # <<<\n', "no TOML", "leave one of them out"),
    ("a backslash", HEAD + 'checkpoints = "C:\\data" # <<<\n', "no TOML", "'single quotes'"),
    ("no equals sign", HEAD + "trigger  # <<<\n", "no TOML", 'name = "fleet"'),
    # -- tables and keys
    ("an unknown table", GOOD + '[sources.more]  # <<<\nkeyexpr = "a"\n', "no table sources", '"source"'),
    ("an unknown key", GOOD.replace('format = "json"', 'fromat = "json"  # <<<'), "knows no fromat", '"format"'),
    ("a key of another table", GOOD + 'watermark = "1 second"  # <<<\n', "knows no watermark", "[source.…]"),
    ("a key in no table", 'name = "fleet"  # <<<\n' + SOURCE + TABLE, "stands in no table", "under [pipeline]"),
    ("no head", SOURCE.replace("]", "]  # <<<", 1) + TABLE, "[pipeline] is missing", 'name = "fleet"'),
    ("no name", GOOD.replace('[pipeline]\nname = "fleet"', "[pipeline]  # <<<"), "has no name", "add name"),
    ("a table without name", GOOD + '[table]\npath = "x"  # <<<\n', "[table] has no name", "[table.NAME]"),
    ("a list of tables", HEAD + TABLE + '[[source.lights]]  # <<<\nkeyexpr = "a"\n', "is a table", "once"),
    ("a name with a dash", GOOD.replace("table.bronze]", "table.my-bronze]  # <<<"), "my-bronze", "my_bronze"),
    ("one name for two", GOOD + step("SELECT key FROM lights", "lights").replace("]", "]  # <<<", 1), "has the name", "another name"),
    ("one name but for capitals", GOOD + step("SELECT 1 AS a", "LIGHTS").replace("]", "]  # <<<", 1), "has the name", "another name"),
    ("no source", HEAD.replace("]", "]  # <<<") + table("lights"), "there is no source", "[source.NAME]"),
    ("nothing written", HEAD.replace("]", "]  # <<<") + SOURCE, "nothing is written", "[table.NAME]"),
    # -- values
    ("a number for a text", GOOD.replace('"fleet"', "7  # <<<"), "a text, not a number", '"7"'),
    ("a text for a flag", GOOD.replace("[table", 'batch = "yes"  # <<<\n[table'), "true or false", "without quotes"),
    ("an empty text", GOOD.replace('"tables/bronze"', '""  # <<<'), "it is empty", "leave the line out"),
    ("no key expression", GOOD.replace('keyexpr = "myhouse/**"\n', "").replace("lights]", "lights]  # <<<"), "no keyexpr", "add keyexpr"),
    ("an invalid key expression", GOOD.replace('"myhouse/**"', '"/myhouse/**"  # <<<'), "invalid key expression", "remove the leading"),
    ("a star inside of a chunk", GOOD.replace('"myhouse/**"', '"myhouse/room*"  # <<<'), "invalid key expression", "$*"),
    ("a trigger that is none", HEAD + 'trigger = "often"  # <<<\n' + SOURCE + TABLE, "no trigger", "available now"),
    ("a trigger without unit", HEAD + "trigger = 2  # <<<\n" + SOURCE + TABLE, "of what", '"2 seconds"'),
    ("an unknown unit", HEAD + 'trigger = "2 secnds"  # <<<\n' + SOURCE + TABLE, "no unit", '"seconds"'),
    ("a bad watermark", GOOD.replace("[table", 'watermark = "soon"  # <<<\n[table'), "no length of time", '"10 seconds"'),
    ("a negative retention", GOOD + 'retention = "-1 day"  # <<<\n', "less than nothing", "minus"),
    ("a bad start", GOOD.replace("[table", 'start = "erliest"  # <<<\n[table'), "no start", '"earliest"'),
    ("a bad time", GOOD.replace("[table", 'as_of = "yesterday"  # <<<\n[table'), "no time", "now(-1h)"),
    ("a bad locator", HEAD + 'connect = "127.0.0.1:7447"  # <<<\n' + SOURCE + TABLE, "locator", "tcp/"),
    ("a locator of an unknown kind", HEAD + 'connect = "tpc/localhost:7447" # <<<\n' + SOURCE + TABLE, "tpc", "tcp"),
    ("an unknown payload format", GOOD.replace('"json"', '"jsn"  # <<<'), "none of raw, json", '"json"'),
    ("an unknown table format", GOOD + 'format = "csv"  # <<<\n', "none of delta, parquet", "delta"),
    ("a table in an unknown store", GOOD.replace('"tables/bronze"', '"ftp://tables/bronze"  # <<<'), "nobody can write tables to ftp", "s3://"),
    ("a table in no bucket", GOOD.replace('"tables/bronze"', '"s3:///bronze"  # <<<'), "nobody can write tables to s3", "directory"),
    ("checkpoints in an object store", GOOD.replace("[source", 'checkpoints = "s3://state"  # <<<\n[source', 1), "not in s3", "directory"),
    ("a merge without keys", GOOD + 'mode = "merge"  # <<<\n', "a merge needs the columns that make a key", "keys"),
    ("keys without a merge", GOOD + 'keys = "key"  # <<<\n', "keys is for rows that are merged", 'mode = "merge"'),
    ("a merge by a column that is not there", GOOD + 'mode = "merge"\nkeys = "kee"  # <<<\n', "has no column kee", '"key"'),
    ("a history without a sequence", GOOD + 'mode = "merge"\nkeys = "key"\nscd = 2  # <<<\n', "a history needs sequence_by", "name a time"),
    ("a merge of another kind", GOOD + 'mode = "merge"\nkeys = "key"\nscd = 3  # <<<\n', "there is no type", "write 1"),
    ("a merge into parquet", GOOD + 'mode = "merge"\nkeys = "key"\nformat = "parquet"  # <<<\n', "parquet cannot be merged", "delta"),
    ("an unknown option", GOOD.replace("[table", "[source.lights.options]\nmaxOffsetPerTrigger = 5  # <<<\n[table"), "no such option", "maxOffsetsPerTrigger"),
    ("a bad option", GOOD.replace("[table", "options = { maxOffsetsPerTrigger = 0 }  # <<<\n[table"), "whole number", ""),
    ("an option with a key", GOOD.replace("[table", 'options = { keyexpr = "a" }  # <<<\n[table'), "must not say keyexpr", "leave it out"),
    # -- schemas
    ("json without schema", GOOD.replace('schema = "on BOOLEAN, brightness INT"\n', "").replace('"json"', '"json"  # <<<'), "need a schema", "add schema"),
    ("a schema without format", GOOD.replace('format = "json"\n', "").replace("INT\"", 'INT"  # <<<'), "raw payloads", 'format = "json"'),
    ("an unknown type", GOOD.replace("INT\"", 'int32"  # <<<'), "no type int32", "write INT"),
    ("a misspelt type", GOOD.replace("BOOLEAN", "BOLEAN").replace("INT\"", 'INT"  # <<<'), "no type BOLEAN", '"BOOLEAN"'),
    ("a field without type", GOOD.replace("brightness INT\"", 'brightness"  # <<<'), "brightness has no type", "DOUBLE"),
    ("no comma in a schema", GOOD.replace("BOOLEAN,", "BOOLEAN").replace("INT\"", 'INT"  # <<<'), "comma is missing", "commas"),
    ("not null", GOOD.replace("INT\"", 'INT NOT NULL"  # <<<'), "must not be null", "expectation"),
    ("a type not closed", GOOD.replace("brightness INT\"", 'tags ARRAY<STRING"  # <<<'), "> is missing", ">"),
    # -- SQL
    ("no SELECT", GOOD + step("DELETE FROM lights -- <<<") + table("step1"), "not with DELETE", "SELECT"),
    ("two statements", GOOD + step("SELECT key FROM lights;\nSELECT 1 -- <<<").replace(";\nSELECT 1", "\n; SELECT 1") + table("step1"), "several statements", "a step of each"),
    ("a bracket not closed", GOOD + step("SELECT key,\n  count(key AS n -- <<<\nFROM lights") + table("step1"), "never closed", "close"),
    ("a bracket too many", GOOD + step("SELECT key,\n  count(key)) AS n -- <<<\nFROM lights") + table("step1"), "no ( before", "take it away"),
    ("a string not closed", GOOD + step("SELECT key\nFROM lights WHERE kind = 'PUT -- <<<") + table("step1"), "a string does not end", "'"),
    ("an unknown name", GOOD + step("SELECT key\nFROM ligths -- <<<") + table("step1"), "no source or step ligths", '"lights"'),
    ("a table read", GOOD + step("SELECT key\nFROM bronze -- <<<") + table("step1"), "bronze is a table", '"lights"'),
    ("an unknown from", GOOD.replace('from = "lights"', 'from = "light"  # <<<'), "no source or step light", '"lights"'),
    ("a circle", GOOD + step("SELECT a\nFROM b -- <<<", "a") + step("SELECT a FROM a", "b") + table("b"), "a → b → a", "source"),
    ("a step that reads itself", GOOD + step("SELECT key\nFROM a -- <<<", "a") + table("a"), "reads itself", "source"),
    ("a column without name", GOOD + step("SELECT key,\n  upper(kind) -- <<<\nFROM lights") + table("step1"), "has no name", "AS"),
    # -- streams
    ("a window without watermark", GOOD + step("SELECT window.start AS at, count(*) AS n FROM lights\nGROUP BY window(timestamp, '1 minute') -- <<<") + table("step1"), "no window ever ends", "watermark ="),
    ("an aggregate without watermark", GOOD + step("SELECT key, count(*) AS n FROM lights\nGROUP BY key -- <<<") + table("step1"), "never final", 'mode = "complete"'),
    ("a count without groups and watermark", GOOD + step("SELECT\n  count(*) AS n -- <<<\nFROM lights") + table("step1"), "never final", 'mode = "complete"'),
    ("distinct rows from the first word on", GOOD + '[step.step1]\nsql = "SELECT DISTINCT key FROM lights"  # <<<\n' + table("step1"), "never final", 'mode = "complete"'),
    ("a mean inside of a function", GOOD + step("SELECT\n  round(avg(value.brightness)) AS n -- <<<\nFROM lights") + table("step1"), "never final", 'mode = "complete"'),
    ("a count of distinct values", GOOD + step("SELECT count(\n DISTINCT key) AS n -- <<<\nFROM lights") + table("step1"), "distinct", "approx_count_distinct"),
    ("a window over rows", GOOD + step("SELECT key, row_number()\n  OVER (PARTITION BY key ORDER BY timestamp) AS n -- <<<\nFROM lights") + table("step1"), "OVER", "max_by"),
    ("a sorted stream", GOOD + step("SELECT key FROM lights\nORDER BY timestamp -- <<<") + table("step1"), "cannot be sorted", "when you read"),
    ("complete of no aggregation", GOOD + step("SELECT key FROM lights") + table("step1", 'mode = "complete"  # <<<\n'), "aggregation", "leave mode out"),
    ("an outer join of streams", GOOD + '[source.doors]\nkeyexpr = "doors/**"\n' + step("SELECT l.key FROM lights l\nLEFT JOIN doors d ON l.key = d.key -- <<<") + table("step1"), "outer join", "watermark"),
    ("event time without watermark", GOOD.replace("[table", 'event_time = "value.at"  # <<<\n[table').replace("brightness INT", "at TIMESTAMP"), "there is none", "add watermark"),
    ("event time of an unknown field", GOOD.replace("[table", WATERMARK + 'event_time = "value.when"  # <<<\n[table'), "no field when", "value.on"),
    ("event time that is no time", GOOD.replace("[table", WATERMARK + 'event_time = "value.on"  # <<<\n[table'), "no time", "TIMESTAMP"),
    ("event time of metadata", GOOD.replace("[table", WATERMARK + 'event_time = "ingest_time"  # <<<\n[table'), "no column ingest_time", "metadata = true"),
    ("as_of with watermark", GOOD.replace("[table", 'as_of = "now()"\nwatermark = "1 second"  # <<<\n[table'), "has no watermark", "leave"),
    ("as_of with start", GOOD.replace("[table", 'as_of = "now()"\nstart = "earliest"  # <<<\n[table'), "one time", "leave one"),
    ("batch from the latest", GOOD.replace("[table", 'batch = true\nstart = "latest"  # <<<\n[table'), "is empty", "leave start out"),
    # -- tables
    ("parquet of no stream", GOOD.replace("[table", "batch = true\n[table") + 'format = "parquet"  # <<<\n', "is no stream", '"delta"'),
    ("parquet of a step without stream", GOOD + '[source.rooms]\nkeyexpr = "rooms/*"\nas_of = "now()"\n' + step("SELECT key FROM rooms") + table("step1", 'format = "parquet"  # <<<\n'), "is no stream", '"delta"'),
    ("parquet that is replaced", GOOD + step("SELECT key, count(*) AS n FROM lights GROUP BY key") + table("step1", 'mode = "complete"\nformat = "parquet"  # <<<\n'), "replaced by every batch", '"delta"'),
    ("one path twice", GOOD + table("lights").replace('"tables/result"', '"./tables/bronze"  # <<<'), "same directory", "another"),
    ("a path inside of another", GOOD + table("lights").replace('"tables/result"', '"tables/bronze/x"  # <<<'), "inside", "beside"),
    ("the path of a backfill", GOOD + table("lights").replace('"tables/result"', '"tables/bronze_backfill"  # <<<'), "the place of a backfill of bronze", "another"),
    ("the path of the checkpoints", GOOD.replace('"tables/bronze"', '"state"  # <<<'), "the checkpoints", "another"),
    ("checkpoints inside of a table", GOOD.replace('"fleet"', '"fleet"\ncheckpoints = "tables/bronze/state"  # <<<'), "inside", "beside"),
    ("a quarantine on a table", GOOD + table("lights", RULE + 'quarantine = "tables/bronze"  # <<<\n'), "same directory", "another"),
    ("a quarantine without rule", GOOD + 'quarantine = "tables/bad"  # <<<\n', "no rule", "add expect"),
    ("an expectation as a text", GOOD + 'expect = ["value.on"]  # <<<\n', "a name and a check", '"value.on"'),
    ("expectations as a text", GOOD + 'expect = "value.on"  # <<<\n', "a list of rules", "expect = ["),
    ("an expectation without check", GOOD + 'expect = [ { name = "a" } ]  # <<<\n', "has no check", "add check"),
    ("an expectation with an unknown end", GOOD + 'expect = [\n  { name = "a", check = "true", otherwise = "ignore" },  # <<<\n]\n', "none of quarantine", "drop"),
    ("an expectation that is a statement", GOOD + 'expect = [ { name = "a", check = "SELECT 1" } ]  # <<<\n', "a condition", "speed > 0"),
    ("two expectations of one name", GOOD + 'expect = [ { name = "a", check = "true" },\n { name = "a", check = "true" } ]  # <<<\n', "two rules", "rename"),
    ("a partition of an unknown column", GOOD + 'partition_by = ["floor"]  # <<<\n', "no column floor", "columns are"),
    # -- publishes
    ("publish without key", publish("SELECT value.on FROM lights", 'format = "json"').replace('from = "step1"', 'from = "step1"  # <<<'), "no column key", "AS key"),
    ("publish without payload", publish("SELECT key, value.on FROM lights").replace('from = "step1"', 'from = "step1"  # <<<'), "column payload", 'format = "json"'),
    ("publish of a source", GOOD + '[publish.alerts]\nfrom = "lights"  # <<<\n', "source_id", "SELECT key, payload"),
    ("publish on a key expression", publish("SELECT payload FROM lights", 'key = "alerts/*"  # <<<'), "one key", "without *"),
    ("publish with an unknown priority", publish("SELECT key, payload FROM lights", 'options = { priority = "high" }  # <<<'), "priority", ""),
]  # fmt: skip

WARNINGS = [
    ("a step nobody uses", GOOD + step("SELECT key FROM lights").replace("]", "]  # <<<", 1), "nobody uses the step", "from ="),
    ("a source nobody uses", GOOD + '[source.doors]  # <<<\nkeyexpr = "doors/**"\n', "nobody uses the source", "leave it out"),
    ("a run to the end from the latest", GOOD.replace("[table", 'start = "latest"  # <<<\n[table').replace('"fleet"', '"fleet"\ntrigger = "available now"'), "reads nothing", "earliest"),
    ("groups that no watermark ends", GOOD.replace("[table", WATERMARK + "[table") + step("SELECT key, count(*) AS n FROM lights\nGROUP BY key -- <<<") + table("step1"), "no watermark ends", "window(timestamp"),
    ("a sum that no watermark ends", GOOD.replace("[table", WATERMARK + "[table") + step("SELECT\n sum(value.brightness) AS n -- <<<\nFROM lights") + table("step1"), "no watermark ends", "window(timestamp"),
    ("a join that keeps everything", GOOD + '[source.doors]\nkeyexpr = "doors/**"\n' + step("SELECT l.key FROM lights l JOIN doors d ON l.key = d.key -- <<<") + table("step1"), "for ever", "watermark"),
    ("a loop", publish("SELECT payload FROM lights", 'key = "myhouse/alerts"  # <<<'), "again and again", "does not read"),
]  # fmt: skip
