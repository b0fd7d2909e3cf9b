"""The plan of a pipeline as text and as SVG."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

from elea.spark.pipeline import picture, specreader
from elea.spark.pipeline.layout import layout
from elea.spark.pipeline.spec import Spec

FILE = """\
[pipeline]
name = "p"
[source.a]
keyexpr = "a/**"
[source.b]
keyexpr = "b"
batch = true
[step.s]
sql = "SELECT key FROM a"
[step.t]
sql = "SELECT s.key FROM s JOIN b ON true"
[table.x]
from = "t"
path = "x"
[table.y]
from = "s"
path = "y"
[table.v]
from = "s"
path = "v"
[table.z]
from = "a"
path = "z"
[table.w]
from = "b"
path = "w"
"""

# Lines that meet at an arrow are joined, a line that crosses another passes beneath it, and a long line has a way of
# its own between the boxes.
PICTURE = """\
┌───────────┐       ┌───────────┐       ┌───────────┐
│ source a  ├───┐   │ step s    ├───┐   │ table y   │
│ a/**      │   ├──▶│ SQL       │   ├──▶│ y · delta │
└───────────┘   │   └───────────┘   │   └───────────┘
                │                   │
                │   ┌───────────┐   │   ┌───────────┐
                │   │ table z   │   │   │ table v   │
                └──▶│ z · delta │   ├──▶│ v · delta │
                    └───────────┘   │   └───────────┘
                                    │
┌───────────┐       ┌───────────┐   │   ┌───────────┐     ┌───────────┐
│ source b  ├─┐     │ table w   │   │   │ step t    ├─┐   │ table x   │
│ b (batch) │ ├────▶│ w · delta │ ┌─┴──▶│ SQL: join │ └──▶│ x · delta │
└───────────┘ │     └───────────┘ │     └───────────┘     └───────────┘
              │                   │
              │                   │
              │      ┌────────────┘
              └──────┘
"""


def spec() -> Spec:
    found, problems = specreader.understand(FILE, Path("p.toml"))
    assert found is not None, problems
    return found


def test_boxes_and_arrows() -> None:
    assert picture.text(spec()) + "\n" == PICTURE


def test_a_line_that_crosses_another_passes_beneath_it() -> None:
    text = '[pipeline]\nname = "p"\n' + "".join(f'[source.{one}]\nkeyexpr = "{one}"\nbatch = true\n' for one in "lr")
    for name, reads in (("s", "l"), ("f", "s"), ("a", "s"), ("j", "f, r"), ("o", "l, a")):
        text += f'[step.{name}]\nsql = "SELECT 1 AS x FROM {reads}"\n'
    for at, reads in enumerate("lsfajo"):
        text += f'[table.t{at}]\nfrom = "{reads}"\npath = "t{at}"\n'
    found, problems = specreader.understand(text, Path("p.toml"))
    assert found is not None, problems

    drawn = picture.text(found)

    assert "├─│──▶│ t3 · delta" in drawn
    assert "┼" not in drawn


def test_no_two_boxes_share_a_place_and_lines_go_to_the_next_column() -> None:
    made = layout(spec())

    places = [(box.column, box.row) for box in made.boxes]
    assert len(set(places)) == len(places)
    assert all(end.column == start.column + 1 for start, end, _ in made.lines)


def test_names_that_are_markup_are_text_in_svg() -> None:
    odd = FILE.replace('"a/**"', '"a/<b>&c/**"')
    found, problems = specreader.understand(odd, Path("p.toml"))
    assert found is not None, problems

    root = ElementTree.fromstring(picture.svg(found))

    assert "a/<b>&c/**" in {one.text for one in root.iter("{http://www.w3.org/2000/svg}text")}
