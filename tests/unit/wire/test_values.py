"""Message values do what named tuples do, and equal only their own kind."""

from __future__ import annotations

import copy
import inspect
import pickle
from typing import Any, NamedTuple

import pytest

from elea.wire.values import MessageValue


class Place(MessageValue):
    """A place."""

    row: int
    column: int = 0
    name: str | None = None


class Twin(MessageValue):
    row: int
    column: int = 0
    name: str | None = None


class Nothing(MessageValue):
    pass


class Model(NamedTuple):
    row: int
    column: int = 0
    name: str | None = None


CALLS: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    ((1,), {}),
    ((1, 2), {"name": "a"}),
    ((), {"name": "b", "row": 3}),
    ((1, 2, "c"), {}),
]


@pytest.mark.parametrize(("args", "kwargs"), CALLS)
def test_it_is_what_a_named_tuple_is(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    mine, model = Place(*args, **kwargs), Model(*args, **kwargs)

    assert tuple(mine) == tuple(model)
    assert (mine.row, mine.column, mine.name) == (model.row, model.column, model.name)
    assert repr(mine) == repr(model).replace("Model", "Place")
    assert mine._asdict() == model._asdict()
    assert tuple(mine._replace(column=7)) == tuple(model._replace(column=7))
    assert Place._make(model) == mine
    assert (Place._fields, Place._field_defaults) == (Model._fields, Model._field_defaults)


@pytest.mark.parametrize("kwargs", [{}, {"column": 1}, {"row": 1, "color": 2}])
def test_wrong_calls_are_told_with_the_name_of_the_class(kwargs: dict[str, Any]) -> None:
    for _ in range(2):  # the first call and those after it
        with pytest.raises(TypeError, match=r"Place\.__new__\(\)"):
            Place(**kwargs)


def test_the_first_call_may_be_a_wrong_one() -> None:
    class Fresh(MessageValue):
        size: int

    with pytest.raises(TypeError, match=r"Fresh\.__new__\(\) missing 1 required positional argument: 'size'"):
        Fresh()  # type: ignore[call-arg]
    assert Fresh(1).size == 1
    assert str(inspect.signature(Fresh)) == "(size)"


def test_fields_that_do_not_exist_cannot_be_replaced() -> None:
    with pytest.raises(TypeError, match="color"):
        Place(1)._replace(color=2)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        Place._make([1, 2, "a", 4])


def test_it_equals_only_its_own_kind() -> None:
    assert Place(1) == Place(1, 0)
    assert hash(Place(1)) == hash(Place(1, 0))
    assert Place(1) != Place(2)
    assert Place(1) != Twin(1)  # type: ignore[comparison-overlap]
    assert Place(1) != (1, 0, None)
    assert not Place(1).__eq__(Twin(1))
    assert len({Place(1), Twin(1), Place(1, 0)}) == 2


def test_copies_and_pickles_are_equal() -> None:
    place = Place(1, 2, "a")

    assert pickle.loads(pickle.dumps(place)) == copy.copy(place) == copy.deepcopy(place) == place
    assert type(pickle.loads(pickle.dumps(place))) is Place


def test_it_cannot_change() -> None:
    with pytest.raises(AttributeError):
        Place(1).row = 2  # type: ignore[misc]
    with pytest.raises(AttributeError):
        Place(1).other = 2  # type: ignore[attr-defined]


def test_it_may_have_no_fields() -> None:
    assert Nothing() == Nothing()
    assert repr(Nothing()) == "Nothing()"


def test_it_can_be_matched() -> None:
    match Place(1, 2):
        case Place(row, column, None):
            assert (row, column) == (1, 2)
        case _:
            raise AssertionError
    assert Place.__doc__ == "A place."
    assert Place.__module__ == __name__
