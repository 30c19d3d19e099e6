"""Bandwidth against size, one line a peer, drawn by gnuplot."""

import shutil
import statistics

from children import Failed, output_of
from report import by_round, names_of

LIMIT = 30


def style_of(samples, fabric):
    """A number for each name: the same in both panels of a fabric."""
    windows = {s["window"] for s in samples}
    names = dict.fromkeys(name for window in sorted(windows, reverse=True)
                          for name in names_of(samples, fabric, window))
    return {name: number for number, name in enumerate(names, 1)}


def panel(samples, fabric, window):
    names = names_of(samples, fabric, window)
    style = style_of(samples, fabric)
    lines, data = [], []
    for name in names:
        points = []
        for size in sorted({s["size"] for s in samples}):
            values = by_round(samples, fabric, name, size, window)
            if values:
                points.append(f"{size} {statistics.median(values.values()):.4f}")
        lines.append("'-' using 1:2 with linespoints "
                     f"linetype {style[name]} title \"{name}\"")
        data += [*points, "e"]
    return [f'set title "{fabric}, {window} in flight"', "plot " + ", ".join(lines), *data]


def script(samples, path):
    panels = sorted({(s["fabric"], s["window"]) for s in samples},
                    key=lambda each: (each[0] != "tcp", each))
    rows = -(-len(panels) // 2)
    lines = [f'set terminal svg size 1500,{420 * rows} dynamic font "sans,12" background "white"',
             f'set output "{path}"', f"set multiplot layout {rows},2",
             "set logscale x 2", 'set format x "%.0b %BB"', 'set xlabel "bytes of a write"',
             'set ylabel "GB/s"', "set logscale y", "set key outside noenhanced", "set rmargin 28",
             "set grid"]
    for fabric, window in panels:
        lines += panel(samples, fabric, window)
    return "\n".join([*lines, "unset multiplot", ""])


def check_gnuplot():
    if shutil.which("gnuplot") is None:
        raise Failed("there is no gnuplot to draw with")


def draw(samples, path, scratch):
    """scratch: a path for gnuplot's script."""
    with open(scratch, "w", encoding="utf-8") as file:
        file.write(script(samples, path))
    output_of(["gnuplot", scratch], LIMIT)
