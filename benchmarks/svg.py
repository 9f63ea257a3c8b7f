"""Charts as SVG: horizontal bars, spans and lines on logarithmic axes, legible on light and on dark pages."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

_STYLE = """
svg { font: 12px system-ui, sans-serif; }
.page { fill: #ffffff; } .grid { stroke: #d8dee4; stroke-width: 1; } .axis { stroke: #8c959f; stroke-width: 1; }
text { fill: #1f2328; } .soft { fill: #59636e; } .title { font-size: 15px; font-weight: 600; }
.f0 { fill: #bc4c00; } .f1 { fill: #0969da; } .f2 { fill: #1a7f37; } .f3 { fill: #8250df; } .f4 { fill: #6e7781; }
.s0 { stroke: #bc4c00; } .s1 { stroke: #0969da; } .s2 { stroke: #1a7f37; } .s3 { stroke: #8250df; }
.s4 { stroke: #6e7781; } .line { fill: none; stroke-width: 2; } .goal { stroke: #cf222e; stroke-width: 2.5; }
@media (prefers-color-scheme: dark) {
.page { fill: #0d1117; } .grid { stroke: #30363d; } .axis { stroke: #6e7681; }
text { fill: #e6edf3; } .soft { fill: #9198a1; }
.f0 { fill: #f0883e; } .f1 { fill: #58a6ff; } .f2 { fill: #3fb950; } .f3 { fill: #bc8cff; } .f4 { fill: #9198a1; }
.s0 { stroke: #f0883e; } .s1 { stroke: #58a6ff; } .s2 { stroke: #3fb950; } .s3 { stroke: #bc8cff; }
.s4 { stroke: #9198a1; } .goal { stroke: #ff7b72; }
}
"""
_LEFT, _RIGHT, _TOP, _BOTTOM = 150, 60, 74, 34
_BAR, _GAP = 7, 9
_WIDTH = 860
_SIDE = 84


@dataclass(frozen=True, kw_only=True)
class Row:
    """One line of a chart: a value for each series, or from and to, and a mark where the goal is."""

    label: str
    spans: Sequence[tuple[float, float] | None]
    """For plain bars the first of both is the start of the axis."""
    goals: Sequence[float | None] = ()


@dataclass(frozen=True, kw_only=True)
class Line:
    """A series of a line chart."""

    name: str
    points: Sequence[tuple[float, float]]


@dataclass
class _Axis:
    """Logarithmic, from one power of ten to another."""

    low: float
    high: float
    begin: float
    end: float

    @classmethod
    def over(cls, values: Sequence[float], *, begin: float, end: float) -> "_Axis":
        positive = [value for value in values if value > 0] or [1.0]
        low, high = math.floor(math.log10(min(positive))), math.ceil(math.log10(max(positive)))
        return cls(low, max(high, low + 1), begin, end)

    @classmethod
    def exactly(cls, values: Sequence[float], *, begin: float, end: float) -> "_Axis":
        """From the least to the most, without any margin."""
        low, high = math.log10(min(values)), math.log10(max(values))
        return cls(low, max(high, low + 0.1), begin, end)

    def at(self, value: float) -> float:
        share = (math.log10(max(value, 10**self.low)) - self.low) / (self.high - self.low)
        return self.begin + share * (self.end - self.begin)

    def ticks(self) -> list[tuple[float, str]]:
        return [(self.at(10.0**power), _power(power)) for power in range(int(self.low), int(self.high) + 1)]


def _power(power: int) -> str:
    return f"{10**power:,}" if power >= 0 else f"{10.0**power:g}"


@dataclass
class _Canvas:
    width: float
    height: float
    parts: list[str] = field(default_factory=list)

    def text(self, x: float, y: float, words: str, *, anchor: str = "start", kind: str = "") -> None:
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" class="{kind}">{escape(words)}</text>')

    def line(self, start: tuple[float, float], end: tuple[float, float], *, kind: str) -> None:
        (x1, y1), (x2, y2) = start, end
        self.parts.append(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{kind}"/>')

    def bar(self, x: float, y: float, *, width: float, kind: str) -> None:
        size = f'width="{max(width, 2):.1f}" height="{_BAR - 1}"'
        self.parts.append(f'<rect x="{x:.1f}" y="{y:.1f}" {size} rx="1.5" class="{kind}"/>')

    def curve(self, points: Sequence[tuple[float, float]], *, series: int) -> None:
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self.parts.append(f'<polyline points="{path}" class="line s{series}"/>')
        self.parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" class="f{series}"/>' for x, y in points]

    def heading(self, title: str, note: str, names: Sequence[str], *, first: int = 0) -> None:
        self.text(16, 24, title, kind="title")
        self.text(16, 42, note, kind="soft")
        x = 16.0
        for number, name in enumerate(names, first):
            self.parts.append(f'<rect x="{x:.1f}" y="51" width="11" height="11" rx="2" class="f{number}"/>')
            self.text(x + 16, 61, name)
            x += 36 + 6.6 * len(name)

    def document(self, title: str) -> str:
        size = f'width="{self.width:.0f}" height="{self.height:.0f}" viewBox="0 0 {self.width:.0f} {self.height:.0f}"'
        return "\n".join([
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{escape(title, quote=True)}">',
            f"<style>{_STYLE}</style>",
            '<rect width="100%" height="100%" class="page"/>',
            *self.parts,
            "</svg>\n",
        ])  # fmt: skip


def row_chart(title: str, note: str, *, names: Sequence[str], rows: Sequence[Row], first: int = 0) -> str:
    """Rows of bars, or of spans, on one logarithmic axis. A red mark is the goal. Colours begin with the first."""
    step = _BAR * len(names) + _GAP
    canvas = _Canvas(_WIDTH, _TOP + step * len(rows) + _BOTTOM)
    ends = [end for row in rows for span in row.spans if span for end in span]
    ends += [goal for row in rows for goal in row.goals if goal]
    axis = _Axis.over(ends, begin=_LEFT, end=_WIDTH - _RIGHT)
    canvas.heading(title, note, names, first=first)
    for x, label in axis.ticks():
        canvas.line((x, _TOP), (x, canvas.height - _BOTTOM), kind="grid")
        canvas.text(x, canvas.height - _BOTTOM + 16, label, anchor="middle", kind="soft")
    for number, row in enumerate(rows):
        _draw_row(canvas, axis, row, top=_TOP + step * number + _GAP / 2, first=first)
    canvas.line((_LEFT, _TOP), (_LEFT, canvas.height - _BOTTOM), kind="axis")
    return canvas.document(title)


def _draw_row(canvas: _Canvas, axis: _Axis, row: Row, *, top: float, first: int) -> None:
    middle = top + _BAR * len(row.spans) / 2 + 4
    canvas.text(_LEFT - 8, middle, row.label, anchor="end")
    for series, span in enumerate(row.spans):
        if span:
            begin, end = axis.at(span[0]), axis.at(span[1])
            canvas.bar(begin, top + _BAR * series, width=end - begin, kind=f"f{first + series}")
    for series, goal in enumerate(row.goals):
        if goal:
            x, y = axis.at(goal), top + _BAR * series
            canvas.line((x, y - 1.5), (x, y + _BAR + 0.5), kind="goal")


def bar(value: float | None, floor: float) -> tuple[float, float] | None:
    """A span from the start of the axis."""
    return (floor, value) if value else None


def line_chart(title: str, note: str, *, across: str, lines: Sequence[Line]) -> str:
    """Lines on two logarithmic axes: what is level does not grow, a slope of one is growth in proportion."""
    lines = [line for line in lines if line.points]
    canvas = _Canvas(_WIDTH, 420.0)
    xs = [x for line in lines for x, _ in line.points]
    along = _Axis.exactly(xs, begin=_SIDE, end=_WIDTH - _RIGHT)
    up = _Axis.over([y for line in lines for _, y in line.points], begin=canvas.height - 56, end=_TOP + 6)
    canvas.heading(title, note, [line.name for line in lines])
    for y, label in up.ticks():
        canvas.line((_SIDE, y), (_WIDTH - _RIGHT, y), kind="grid")
        canvas.text(_SIDE - 8, y + 4, label, anchor="end", kind="soft")
    for x in sorted(set(xs)):
        canvas.line((along.at(x), _TOP + 6), (along.at(x), canvas.height - 56), kind="grid")
        canvas.text(along.at(x), canvas.height - 38, f"{x:,.0f}", anchor="middle", kind="soft")
    canvas.text((_SIDE + _WIDTH - _RIGHT) / 2, canvas.height - 16, across, anchor="middle")
    for series, line in enumerate(lines):
        canvas.curve([(along.at(x), up.at(y)) for x, y in line.points], series=series)
    return canvas.document(title)
