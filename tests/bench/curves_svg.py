"""A chart with logarithmic axes as SVG, readable on a light and on a dark page."""

import math

WIDTH, HEIGHT = 640, 400
LEFT, RIGHT, TOP, BOTTOM = 70, 150, 44, 52
STYLE = """
  text { font: 13px sans-serif; fill: #1f2328 }
  .title { font-weight: bold }
  .page { fill: #ffffff }
  .grid { stroke: #d1d9e0; stroke-width: 1 }
  .line { fill: none; stroke-width: 2.5 }
  .c0 { stroke: #0969da } .f0 { fill: #0969da }
  .c1 { stroke: #bc4c00 } .f1 { fill: #bc4c00 }
  .c2 { stroke: #656d76; stroke-dasharray: 5 4 } .f2 { fill: #656d76 }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 }
    .page { fill: #0d1117 }
    .grid { stroke: #30363d }
    .c0 { stroke: #58a6ff } .f0 { fill: #58a6ff }
    .c1 { stroke: #f0883e } .f1 { fill: #f0883e }
    .c2 { stroke: #8b949e } .f2 { fill: #8b949e }
  }
"""


class Axis:
    """From values to places; ends lie on powers of ten."""

    def __init__(self, values, begin, end):
        self.low = math.floor(math.log10(min(values)))
        self.high = max(self.low + 1, math.ceil(math.log10(max(values))))
        self.begin, self.end = begin, end

    def place(self, value):
        share = (math.log10(value) - self.low) / (self.high - self.low)
        return self.begin + share * (self.end - self.begin)

    def ticks(self):
        return [10.0 ** power for power in range(self.low, self.high + 1)]


def label(value):
    return f"{value:,.0f}" if value >= 1 else f"{value:g}"


def draw(path, title, x_title, y_title, lines):
    """`lines`: (name, [(x, y), ...]) each, at most three; all values above 0."""
    points = [point for _, line in lines for point in line]
    x = Axis([p[0] for p in points], LEFT, WIDTH - RIGHT)
    y = Axis([p[1] for p in points], HEIGHT - BOTTOM, TOP)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
           f'width="{WIDTH}" height="{HEIGHT}">', f"<style>{STYLE}</style>",
           f'<rect class="page" width="{WIDTH}" height="{HEIGHT}"/>',
           f'<text class="title" x="{LEFT}" y="24">{title}</text>']
    for tick in x.ticks():
        at = x.place(tick)
        out += [f'<path class="grid" d="M{at:.1f} {TOP}V{HEIGHT - BOTTOM}"/>',
                f'<text x="{at:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">'
                f"{label(tick)}</text>"]
    for tick in y.ticks():
        at = y.place(tick)
        out += [f'<path class="grid" d="M{LEFT} {at:.1f}H{WIDTH - RIGHT}"/>',
                f'<text x="{LEFT - 8}" y="{at + 4:.1f}" text-anchor="end">{label(tick)}</text>']
    middle = (TOP + HEIGHT - BOTTOM) / 2
    out += [f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 12}" text-anchor="middle">'
            f"{x_title}</text>",
            f'<text transform="translate(18 {middle}) rotate(-90)" text-anchor="middle">'
            f"{y_title}</text>"]
    for number, (_, line) in enumerate(lines):
        places = [(x.place(a), y.place(b)) for a, b in line]
        out.append(f'<path class="line c{number}" d="M'
                   + "L".join(f"{a:.1f} {b:.1f}" for a, b in places) + '"/>')
        out += [f'<circle class="f{number}" cx="{a:.1f}" cy="{b:.1f}" r="3.5"/>'
                for a, b in places]
    out += names(lines, y)
    out.append("</svg>")
    path.write_text("\n".join(out) + "\n", encoding="utf-8")


def names(lines, y):
    """Beside the ends of the lines, kept apart."""
    ends = sorted((y.place(line[-1][1]), number, name) for number, (name, line) in enumerate(lines))
    previous = -math.inf
    for at, number, name in ends:
        at = max(at, previous + 17)
        previous = at
        yield (f'<text x="{WIDTH - RIGHT + 12}" y="{at + 4:.1f}"><tspan class="f{number}">&#9679;'
               f"</tspan> {name}</text>")
