"""Value classes do what dataclasses do, and cost less to make."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import subprocess
import sys
from typing import ClassVar

import pytest

from elea.model.values import COMPILED_AFTER, field, replaced, value_class


@value_class(order=True)
class Place:
    row: int
    column: int = 0
    tags: list[str] = field(default_factory=list)

    ORIGIN: ClassVar[str] = "top left"

    def __post_init__(self) -> None:
        if self.row < 0:
            raise ValueError(f"row {self.row}")


@dataclasses.dataclass(frozen=True, slots=True, order=True)
class Twin:
    row: int
    column: int = 0
    tags: list[str] = dataclasses.field(default_factory=list)


@value_class(frozen=False)
class Counter:
    count: int = 0


@value_class
class Only:
    key: str


@value_class
class Nothing:
    pass


@value_class
class Named:
    name: str

    def __repr__(self) -> str:
        return f"<{self.name}>"


CALLS: list[tuple[tuple[object, ...], dict[str, object]]] = [
    ((1,), {}),
    ((1, 2), {}),
    ((1, 2, ["a"]), {}),
    ((), {"row": 1}),
    ((1,), {"tags": ["b"], "column": 3}),
    ((), {}),
    ((1, 2, [], 4), {}),
    ((1,), {"row": 1}),
    ((1,), {"line": 1}),
    ((), {"column": 1}),
]


def outcome(cls: type, args: tuple[object, ...], kwargs: dict[str, object]) -> object:
    try:
        made = cls(*args, **kwargs)
    except TypeError as error:
        return str(error).partition("__init__")[2]
    return made.row, made.column, made.tags


@pytest.mark.parametrize("before", [0, 2 * COMPILED_AFTER], ids=["first calls", "compiled"])
@pytest.mark.parametrize(("args", "kwargs"), CALLS, ids=str)
def test_constructor_takes_and_refuses_what_that_of_a_dataclass_does(
    args: tuple[object, ...], kwargs: dict[str, object], before: int
) -> None:
    @value_class
    class Fresh:
        row: int
        column: int = 0
        tags: list[str] = field(default_factory=list)

    for number in range(before):
        Fresh(number)

    assert outcome(Fresh, args, kwargs) == outcome(Twin, args, kwargs)


def test_every_value_has_its_own_of_what_is_made() -> None:
    made = [Place(1) for _ in range(2 * COMPILED_AFTER)]

    made[0].tags.append("x")
    made[-1].tags.append("y")

    assert [place.tags for place in made[1:-1]] == [[]] * (len(made) - 2)


def test_post_init_is_called_before_and_after_compiling() -> None:
    for _ in range(2 * COMPILED_AFTER):
        with pytest.raises(ValueError, match="row -1"):
            Place(-1)


def test_values_compare_print_and_hash_by_their_fields() -> None:
    assert Place(1) == Place(1, 0, [])
    assert Place(1) != Place(2)
    assert Place(1) != Twin(1)  # type: ignore[comparison-overlap]
    assert repr(Place(1, 2)) == "Place(row=1, column=2, tags=[])"
    assert repr(Named("a")) == "<a>"
    assert len({Only("a"), Only("a"), Only("b")}) == 2
    assert Nothing() == Nothing()
    assert hash(Nothing()) == hash(Nothing())
    assert repr(Nothing()) == "Nothing()"


def test_ordered_values_are_ordered_by_their_fields() -> None:
    assert Place(1, 5) < Place(2) <= Place(2) < Place(2, 1)
    assert Place(2, 1) > Place(2) >= Place(2) > Place(1, 5)
    for compared in ("__lt__", "__le__", "__gt__", "__ge__"):
        assert getattr(Place(1), compared)(Twin(1)) is NotImplemented
    with pytest.raises(TypeError, match="not supported"):
        Only("a") < Only("b")  # type: ignore[operator]  # noqa: B015


def test_frozen_value_cannot_be_changed() -> None:
    place = Place(1)

    with pytest.raises(dataclasses.FrozenInstanceError, match="'row': a Place stays"):
        place.row = 2  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError, match="'row'"):
        del place.row
    with pytest.raises(AttributeError):
        place.other = 2  # type: ignore[attr-defined]
    assert place == Place(1)


def test_value_that_is_not_frozen_can_be_changed_and_has_no_hash() -> None:
    made = [Counter() for _ in range(2 * COMPILED_AFTER)]

    made[0].count += 1
    made[-1].count += 2

    assert (made[0], made[-1]) == (Counter(1), Counter(count=2))
    with pytest.raises(TypeError, match="unhashable"):
        hash(made[0])


def test_values_have_slots_and_class_variables_are_no_fields() -> None:
    assert not hasattr(Place(1), "__dict__")
    assert Place.ORIGIN == "top left"
    match Place(1, 2):
        case Place(row, column):
            assert (row, column) == (1, 2)


def test_slots_of_a_class_itself_are_no_fields() -> None:
    @value_class
    class Remembering:
        __slots__ = ("_seen",)
        row: int

    value = Remembering(1)
    object.__setattr__(value, "_seen", 2)

    assert (getattr(value, "_seen"), value) == (2, Remembering(1))  # noqa: B009 - a checker knows fields only
    assert repr(value).endswith("Remembering(row=1)")


def test_copies_and_pickles_are_equal() -> None:
    place = Place(1, 2, ["a"])

    assert pickle.loads(pickle.dumps(place)) == place
    assert copy.copy(place) == place
    deep = copy.deepcopy(place)
    assert deep == place
    assert deep.tags is not place.tags


def test_replacing_leaves_the_rest() -> None:
    place = Place(1, 2, ["a"])

    assert replaced(place, column=3) == Place(1, 3, ["a"])
    assert dataclasses.replace(place, column=3) == Place(1, 3, ["a"])
    assert dataclasses.asdict(place) == {"row": 1, "column": 2, "tags": ["a"]}
    assert [found.name for found in dataclasses.fields(Place)] == ["row", "column", "tags"]


def test_making_and_using_values_imports_no_dataclasses() -> None:
    program = """
import sys
from elea.model.qos import Qos
assert Qos() == Qos() and repr(Qos()) and hash(Qos()) == hash(Qos())
print("dataclasses" in sys.modules)
"""
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert found.stdout == "False\n"
