"""Lines as SVG, and the numbers beside them."""

from __future__ import annotations

import re

import pytest

from elea.plot.svg import HEIGHT, Series, plot, ticks


@pytest.mark.parametrize(
    ("most", "wanted"),
    [(0, [0, 1]), (7, [0, 2, 4, 6, 8]), (400, [0, 100, 200, 300, 400]), (0.03, [0, 0.01, 0.02, 0.03]), (1e6, None)],
)
def test_ticks_are_round_and_reach_the_greatest(most: float, wanted: list[float] | None) -> None:
    found = ticks(most)

    assert wanted is None or found == wanted
    assert found[-1] >= most
    assert 2 <= len(found) <= 6


def test_lines_stay_inside_of_their_plot_and_one_point_is_a_dot() -> None:
    drawn = plot("A & B", [Series("a", ((0, 0), (5, 93), (9, 17))), Series("b", ((0, 5), (9, 5)))])
    points = [tuple(map(float, one.split(","))) for one in re.findall(r"[\d.]+,[\d.]+", drawn)]

    assert all(52 <= x <= 408 and 30 <= y <= 176 for x, y in points)
    assert "A &amp; B" in drawn
    assert drawn.count("<rect") == 2
    assert "<circle" in plot("one", [Series("a", ((0, 3),))])
    assert "<svg" in plot("none", [])


@pytest.mark.parametrize(
    ("least", "most", "wanted"),
    [
        (-7, 4, [-10, -5, 0, 5]),
        (20.1, 20.4, [20.1, 20.2, 20.3, 20.4]),
        (3, 3, [3, 4]),
        (-3, -1, [-3, -2.5, -2, -1.5, -1]),
    ],
)
def test_ticks_may_begin_elsewhere_than_at_zero(least: float, most: float, wanted: list[float]) -> None:
    assert ticks(most, least=least) == pytest.approx(wanted)


def test_values_below_zero_stay_inside_of_their_plot() -> None:
    drawn = plot("", [Series("a", ((0, -7.0), (5, -3.0), (9, -5.0)))], from_zero=False)
    points = [tuple(map(float, one.split(","))) for one in re.findall(r"[\d.]+,[\d.]+", drawn)]

    assert len(points) == 3
    assert all(52 <= x <= 408 and 30 <= y <= HEIGHT - 34 for x, y in points)
    assert points[0][1] > points[2][1] > points[1][1]
    assert ">-7<" in drawn
