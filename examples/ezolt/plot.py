"""Draws faults and resident memory over time as an SVG picture, with nothing but the standard library."""

from html import escape

WIDTH, HEIGHT = 860, 300
PANEL_WIDTH, PANEL_HEIGHT, TOP = 330, 190, 60
PANEL_LEFT = (70, 500)
STYLE = """
svg { background: #ffffff; font: 12px system-ui, sans-serif; fill: #24292f }
.grid { stroke: #d0d7de; stroke-width: 1 } .title { font-weight: 600; font-size: 14px }
.line { fill: none; stroke-width: 2; stroke-linejoin: round }
.default { stroke: #c2410c } .cured { stroke: #1d6fb8 } .fill-default { fill: #c2410c } .fill-cured { fill: #1d6fb8 }
@media (prefers-color-scheme: dark) {
  svg { background: #0d1117; fill: #e6edf3 } .grid { stroke: #30363d }
  .default { stroke: #fb923c } .cured { stroke: #58a6ff } .fill-default { fill: #fb923c } .fill-cured { fill: #58a6ff }
}
"""


def nice_step(top, steps=4):
    """A step of 1, 2 or 5 times a power of ten that cuts `top` into about `steps` parts."""
    power = 1.0
    while power * 10 <= top / steps:
        power *= 10
    while power > top / steps:
        power /= 10
    return next(power * m for m in (1, 2, 5, 10) if power * m >= top / steps)


def panel(left, title, unit, series, end):
    """One plot; series are (class, label, [(seconds, value)])."""
    top = max(value for _, _, points in series for _, value in points) or 1.0
    step_y, step_x = nice_step(top), nice_step(end)
    top = step_y * -(-top // step_y)

    def x(seconds):
        return left + PANEL_WIDTH * seconds / end

    def y(value):
        return TOP + PANEL_HEIGHT * (1 - value / top)

    parts = [f'<text class="title" x="{left}" y="{TOP - 18}">{escape(title)}</text>']
    for i in range(int(top / step_y + 0.5) + 1):
        at = y(i * step_y)
        parts.append(f'<path class="grid" d="M{left} {at:.1f}h{PANEL_WIDTH}"/>')
        parts.append(f'<text x="{left - 8}" y="{at + 4:.1f}" text-anchor="end">{i * step_y:g}{unit}</text>')
    for i in range(int(end / step_x) + 1):
        parts.append(f'<text x="{x(i * step_x):.1f}" y="{TOP + PANEL_HEIGHT + 18}" text-anchor="middle">{i * step_x:g} s</text>')
    for name, _, points in series:
        path = "L".join(f"{x(t):.1f} {y(v):.1f}" for t, v in points)
        parts.append(f'<path class="line {name}" d="M{path}"/>')
    return "\n".join(parts)


def legend(series):
    """Names of the lines, below both panels."""
    parts, at = [], PANEL_LEFT[0]
    for name, label, _ in series:
        parts.append(f'<rect class="fill-{name}" x="{at}" y="{HEIGHT - 22}" width="18" height="4"/>')
        parts.append(f'<text x="{at + 26}" y="{HEIGHT - 16}">{escape(label)}</text>')
        at += 60 + 7 * len(label)
    return "\n".join(parts)


def picture(runs):
    """SVG text for runs: (class, label, rows of (seconds, minor faults, resident bytes))."""
    end = max(rows[-1][0] for _, _, rows in runs)
    faults = [(name, label, [(t, f / 1e6) for t, f, _ in rows]) for name, label, rows in runs]
    sizes = [(name, label, [(t, v / 1e6) for t, _, v in rows]) for name, label, rows in runs]
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        'aria-label="Minor faults rise without end by default and stay flat when cured; resident memory '
        'jumps up and down by default and stays constant when cured">',
        f"<style>{STYLE}</style>",
        panel(PANEL_LEFT[0], "Minor faults in total, million", "", faults, end),
        panel(PANEL_LEFT[1], "Resident memory, MB", "", sizes, end),
        legend(faults),
        "</svg>\n",
    ])
