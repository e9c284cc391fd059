"""The programs of data/hostile_programs.txt by name."""

from pathlib import Path

_TEXT = (Path(__file__).parent / "data" / "hostile_programs.txt").read_text(encoding="utf-8")
_PARTS = [part.partition("\n") for part in _TEXT.split("### ")[1:]]
HOSTILE = {name: program.strip("\n") for name, _, program in _PARTS if name != "About"}
