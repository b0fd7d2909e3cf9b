"""The text that Spark shows of an error begins with the sentence that helps."""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Iterator

import pytest

pytest.importorskip("pyspark")

from elea.model.errors import ConfigError
from elea.spark.saidfirst import says_first
from elea.spark.source import ZenohDataSource


@says_first
class Source:
    def reader(self) -> None:
        try:
            raise OSError("far below")
        except OSError as error:
            raise ConfigError("option a", "it is wrong", "write b") from error

    def read(self, count: int) -> Iterator[int]:
        yield from range(count)
        raise ConfigError("option a", "it is wrong", "write b")

    def commit(self) -> None:
        raise OSError("not ours")

    def other(self) -> None:
        raise ConfigError("option a", "it is wrong", "write b")


def shown(call: object) -> str:
    """As Spark's worker writes it."""
    try:
        call()  # type: ignore[operator]
    except Exception:  # noqa: BLE001 - whatever it is
        return traceback.format_exc()
    raise AssertionError("nothing was wrong")


@pytest.mark.parametrize("call", [Source().reader, lambda: list(Source().read(3))], ids=["call", "stream"])
def test_an_error_of_ours_begins_with_its_text_and_ends_with_its_class(call: object) -> None:
    text = shown(call)

    assert text.startswith("elea.Problem: option a: it is wrong; write b\n")
    assert text.rstrip().endswith("elea.model.errors.ConfigError: option a: it is wrong; write b")
    assert "far below" not in text
    assert text.count('  File "') <= 3  # who called, and who says it
    assert "in reader" not in text
    assert "in read\n" not in text


def test_errors_of_others_and_what_spark_does_not_call_are_left_alone() -> None:
    assert shown(Source().commit).startswith("Traceback")
    assert shown(Source().other).startswith("Traceback")


def test_rows_before_the_error_come() -> None:
    rows = Source().read(2)

    assert (next(rows), next(rows)) == (0, 1)
    with pytest.raises(ConfigError):
        next(rows)


def test_the_source_says_first_what_is_wrong_with_its_options_and_can_be_sent_to_a_worker() -> None:
    source = pickle.loads(pickle.dumps(ZenohDataSource({"keyexp": "a/**"})))

    assert shown(source.schema).startswith(
        "elea.Problem: option keyexp: there is no such option; did you mean keyexpr?"
    )
