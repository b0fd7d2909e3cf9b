"""Lines in a terminal."""

from __future__ import annotations

import pytest

from elea.plot.svg import Series
from elea.plot.terminal import draw


@pytest.mark.parametrize("width", [10, 40, 120])
def test_plot_fits_into_its_width_and_height(width: int) -> None:
    rows = draw([Series("a", tuple((x, (x * 37) % 11 - 5.0) for x in range(100)))], width=width, height=7)

    assert len(rows) == 8
    assert all(len(row) <= max(width, 13) for row in rows)


def test_value_that_stays_the_same_is_a_level_line() -> None:
    rows = draw([Series("a", ((0, 5.0), (9, 5.0)))], width=20, height=3)

    assert rows[2].startswith("5│⣀⣀⣀") or rows[2].startswith(" 5│⣀⣀⣀")
    assert rows[0].endswith("│")


def test_one_point_and_no_points_are_drawn() -> None:
    assert any("⠀" < character < "⣿" for character in "".join(draw([Series("a", ((0, 5.0),))], width=20, height=3)))
    assert len(draw([], width=20, height=3)) == 4


def test_each_line_has_its_colour() -> None:
    lines = [Series("a", ((0, 0.0), (9, 0.0))), Series("b", ((0, 10.0), (9, 10.0)))]

    rows = draw(lines, width=20, height=3, paint=lambda text, colour: f"<{colour}>{text}")

    assert "<yellow>⠉" in rows[0]
    assert "<cyan>⣀" in rows[2]
