"""Values of fields over time, out of batches."""

from __future__ import annotations

import numpy as np
import pytest

from elea.model.encoding import Encoding
from elea.model.errors import InvalidPredicate
from elea.model.limits import PLOT_LINES, PLOT_POINTS
from elea.recorder.fieldvalues import FieldValues, field_path, thinned
from tests.unit.recorder.samples import NOON, batch_of, row


@pytest.mark.parametrize(
    ("text", "path"),
    [("speed", ("speed",)), ("pos.x", ("pos", "x")), ("a[2].b", ("a", 2, "b")), ('"odd name"', ("odd name",))],
)
def test_field_is_written_as_in_predicates(text: str, path: tuple[str | int, ...]) -> None:
    assert field_path(text) == path


@pytest.mark.parametrize("text", ["", "a > 2", "a AND b", "a IS NULL OR b", "key", "%0", "inRange(a, b, 2)", "NOT a"])
def test_what_is_no_field_is_refused(text: str) -> None:
    with pytest.raises(InvalidPredicate):
        field_path(text)


def test_values_are_taken_by_key_and_field_at_the_time_of_the_sample() -> None:
    cbor = bytes.fromhex("a1617818 2a".replace(" ", ""))
    values = FieldValues(["x", "on"])
    values.add(
        batch_of(
            [
                row(0, payload=b'{"x": 1.5, "on": true}'),
                row(1, payload=cbor, encoding=Encoding.APPLICATION_CBOR.id, key="b"),
                row(2, payload=b'{"x": "text"}'),
                row(3, payload=b"no json"),
                row(4, kind=1, payload=b""),
                row(5, payload=b'{"x": 2}', ntp64=None, stamp_id=None, arrival=NOON + 7),
            ]
        )
    )

    found = {name: (times.tolist(), numbers.tolist()) for name, (times, numbers) in values.lines().items()}
    assert found == {
        ("home/1/temp", "x"): ([NOON, NOON + 7], [1.5, 2.0]),
        ("home/1/temp", "on"): ([NOON], [1.0]),
        ("b", "x"): ([NOON + 1], [42.0]),
    }
    assert (values.values, values.passed_over, values.unreadable) == (4, 4, 1)


@pytest.mark.parametrize("sign", [b"", b"-"])
def test_whole_number_that_is_larger_than_any_float_is_passed_over(sign: bytes) -> None:
    values = FieldValues(["x"])

    values.add(batch_of([row(n, payload=b'{"x": %s1%s}' % (sign, b"0" * zeros)) for n, zeros in enumerate((300, 309))]))

    assert [numbers.tolist() for _, numbers in values.lines().values()] == [[float(sign + b"1e300")]]
    assert (values.values, values.passed_over, values.unreadable) == (1, 1, 0)


def test_long_lines_are_thinned_and_keep_their_peaks() -> None:
    values = FieldValues(["speed"])
    for part in range(3):
        numbers = range(part * PLOT_POINTS, (part + 1) * PLOT_POINTS)
        values.add(batch_of([row(n, ntp64=None, stamp_id=None) for n in numbers]))
    values.add(batch_of([row(1, payload=b'{"speed": -1000000}', arrival=NOON + 500)]))

    ((times, numbers),) = values.lines().values()

    assert PLOT_POINTS // 2 <= len(times) <= PLOT_POINTS
    assert (np.diff(times) >= 0).all()
    assert (numbers.min(), numbers.max()) == (-1_000_000, 3 * PLOT_POINTS - 1)


def test_thinning_takes_the_least_and_the_greatest_of_four() -> None:
    times, values = thinned(np.arange(9), np.array([5.0, 1, 9, 3, 0, 0, 0, 0, 7]))

    assert (times.tolist()[:2], values.tolist()[:2]) == ([1, 2], [1.0, 9.0])
    assert (times[-1], values[-1]) == (8, 7.0)


def test_keys_for_which_there_is_no_line_left_are_counted() -> None:
    values = FieldValues(["speed"])

    values.add(batch_of([row(n, key=f"k/{n}") for n in range(PLOT_LINES + 3)]))

    assert len(values.lines()) == PLOT_LINES
    assert len(values.more) == 3
