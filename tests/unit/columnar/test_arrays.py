"""Between Arrow and NumPy: what is made is what pyarrow makes, and pandas stays where it is."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

from elea.columnar.arrays import given_in, numbers_in, numbers_of, octets_of, texts_of, zeros

WITHOUT_PANDAS = """
import sys
import elea
with elea.open(elea.Config()) as session:
    with session.declare_subscriber("arrays/**", elea.handlers.Arrow(rows=4, seconds=60.0)) as subscriber:
        session.put("arrays/a", b"1")
        session.put("arrays/b", b"2", encoding=elea.Encoding.TEXT_PLAIN, attachment=b"more")
        session.put_batch([("arrays/c", b"3"), ("arrays/d", b"4")], durability="volatile")
        assert subscriber.recv().num_rows == 4
assert "pandas" not in sys.modules, "pandas was loaded"
"""


def test_numbers_are_those_given_with_nulls_where_there_are_none() -> None:
    values = np.array([1, 2, 3], np.uint32)
    given = np.array([True, False, True])

    assert numbers_of(values, pa.uint32()).equals(pa.array([1, 2, 3], pa.uint32()))
    assert numbers_of(values, pa.uint32(), given).equals(pa.array([1, None, 3], pa.uint32()))
    assert numbers_of(values[::2], pa.uint32()).equals(pa.array([1, 3], pa.uint32()))
    assert zeros(3, pa.uint64()).equals(pa.array([0, 0, 0], pa.uint64()))


@pytest.mark.parametrize("values", [[], ["a"], ["", "ä/ö", "long" * 100]])
def test_texts_and_octets_are_those_given(values: list[str]) -> None:
    assert texts_of(values).equals(pa.array(values, pa.string()))
    octets = [each.encode() for each in values]
    assert octets_of(octets).equals(pa.array(octets, pa.binary()))
    octets_of(octets).validate(full=True)


@pytest.mark.parametrize("start", [0, 1, 9])
def test_parts_of_an_array_are_read_where_they_begin(start: int) -> None:
    array = pa.array([None if n % 3 else n for n in range(20)], pa.uint32()).slice(start, 10)

    given = given_in(array)

    assert given.tolist() == [each.is_valid for each in array]
    assert numbers_in(array, np.uint32)[given].tolist() == array.drop_null().to_pylist()
    assert given_in(array.drop_null()).all()


def test_batches_come_and_go_without_pandas() -> None:
    pytest.importorskip("pandas")

    done = subprocess.run([sys.executable, "-c", WITHOUT_PANDAS], capture_output=True, text=True, timeout=120)

    assert done.returncode == 0, done.stderr
