"""The timeline of a probe: a bar per call, who overlapped whom, coloured by answer. Pure.

Positions are percentages of the drawing's width and pixels of its height, so that it fits a phone
and a desktop without scaling its text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

LEFT, RIGHT = 15.0, 99.0  # percent of the width that belongs to the bars
COLOURS = 8
_MOST = 128  # bars drawn; the table below the drawing lists every call
_NARROWEST = 0.6  # percent: a bar that is shorter would not be seen


@dataclass(frozen=True)
class Bar:
    """One call. `x` and `width` in percent, `y` in pixels; `colour` is None without an answer."""

    n: int
    x: float
    width: float
    y: float
    colour: int | None
    letter: str
    words: str


@dataclass(frozen=True)
class Timeline:
    """The drawing of one way. `ticks` are (percent, anchor, words); heights in pixels."""

    bars: list[Bar]
    ticks: list[tuple[float, str, str]]
    height: float
    row: float
    left_out: int
    words: str


def letter(group: int | None) -> str:
    """Return the letter of a distinct answer: A, B, … Z, then AA, AB and so on."""
    if group is None:
        return ""
    first, second = divmod(group, 26)
    return (chr(64 + first) if 0 < first <= 26 else "") + chr(65 + second)


def draw(way: dict[str, Any]) -> Timeline | None:
    """Return the drawing of one way, or None where no call has times."""
    timed = [call for call in way["calls"] if call["sent_ms"] is not None]
    if not timed:
        return None
    ends = [call["answered_ms"] for call in timed if call["answered_ms"] is not None]
    last = max([*ends, *(call["sent_ms"] for call in timed), 0.001]) * (1.0 if ends else 2.0)
    shown = timed[:_MOST]
    row = 18.0 if len(shown) <= 24 else 9.0
    bars = [_bar(call, last, 6 + at * row) for at, call in enumerate(shown)]
    groups = {call["answer"] for call in timed if call["answer"] is not None}
    return Timeline(
        bars=bars,
        ticks=[(LEFT, "start", "0"), _tick(last, 0.5, "middle"), _tick(last, 1.0, "end")],
        height=len(shown) * row + 34,
        row=row,
        left_out=len(timed) - len(shown),
        words=f"{len(timed)} calls over {milliseconds(last)}, {len(groups)} distinct answers",
    )


def milliseconds(value: float | None) -> str:
    """Return a duration for reading; whole milliseconds above ten, seconds above two thousand."""
    if value is None:
        return "–"
    if value >= 2000:
        return f"{value / 1000:.1f} s"
    return f"{value:.0f} ms" if value >= 10 else f"{value:.2g} ms"


def _tick(last: float, share: float, anchor: str) -> tuple[float, str, str]:
    return round(LEFT + (RIGHT - LEFT) * share, 2), anchor, milliseconds(last * share)


def _bar(call: dict[str, Any], last: float, y: float) -> Bar:
    scale = (RIGHT - LEFT) / last
    start = call["sent_ms"]
    end = call["answered_ms"] if call["answered_ms"] is not None else last
    x = LEFT + start * scale
    width = max((end - start) * scale, _NARROWEST)
    group = call["answer"]
    took = milliseconds(end - start) if call["answered_ms"] is not None else "no answer"
    mark = f", {call['mark']}" if call.get("mark") else ""
    return Bar(
        n=call["n"],
        x=round(min(x, RIGHT - width), 2),
        width=round(width, 2),
        y=y,
        colour=None if group is None else group % COLOURS,
        letter=letter(group),
        words=f"call {call['n']}: {call['outcome']}, {took}{mark}",
    )
