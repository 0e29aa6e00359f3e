#!/usr/bin/env python3
"""A time line of one run, as SVG: how many files are coded and verified at each time, and how many are done.

usage: timeline.py LINES.json OUT.svg [--title TEXT]

LINES.json: what `tessera compress --json`, or `test` or `decompress`, prints. A file's line has when it was done and the seconds
that coding and verifying took, waiting included; so its beginning is their difference. Times begin when the first file begins.
"""
import argparse
import json

WIDTH, HEIGHT, LEFT, TOP, BINS = 900, 300, 60, 30, 180
COLOURS = {"coded": "#4477aa", "verified": "#ccbb44", "done": "#222222"}


def spans(files):
    """Of each file: when coding begins, when verifying begins, and the end, in seconds."""
    for file in files:
        code, verify = file.get("encode_s") or 0.0, file.get("verify_s") or 0.0
        yield file["at"] - verify - code, file["at"] - verify, file["at"]


def at_work(intervals, length):
    """How many intervals hold the middle of each bin."""
    counts = [0] * BINS
    for begin, end in intervals:
        for b in range(max(0, int(begin / length * BINS)), min(BINS, int(end / length * BINS) + 1)):
            middle = (b + 0.5) * length / BINS
            counts[b] += begin <= middle < end
    return counts


def area(low, high, most, colour):
    step = WIDTH / BINS
    y = lambda value: TOP + HEIGHT * (1 - value / most)
    points = [(LEFT + b * step, y(v)) for b, v in enumerate(high)] + [(LEFT + b * step, y(v)) for b, v in reversed(list(enumerate(low)))]
    return '<polygon fill="%s" points="%s"/>' % (colour, " ".join("%.1f,%.1f" % p for p in points))


def draw(files, title):
    all_spans = list(spans(files))
    first = min(s[0] for s in all_spans)
    length = max(s[2] for s in all_spans) - first
    coded = at_work([(a - first, b - first) for a, b, _ in all_spans], length)
    verified = at_work([(b - first, c - first) for _, b, c in all_spans], length)
    done = [sum(c - first <= (b + 1) * length / BINS for _, _, c in all_spans) for b in range(BINS)]
    both = [a + b for a, b in zip(coded, verified)]
    most = max(both) or 1
    text = '<text x="%.0f" y="%.0f" font-family="sans-serif" font-size="13" text-anchor="%s" fill="%s">%s</text>'
    out = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d">' % (WIDTH + LEFT + 60, HEIGHT + TOP + 50),
           text % (LEFT, 18, "start", "#222222", title),
           area([0] * BINS, coded, most, COLOURS["coded"]), area(coded, both, most, COLOURS["verified"])]
    line = " ".join("%.1f,%.1f" % (LEFT + b * WIDTH / BINS, TOP + HEIGHT * (1 - d / len(files))) for b, d in enumerate(done))
    out.append('<polyline fill="none" stroke="%s" stroke-width="2" points="%s"/>' % (COLOURS["done"], line))
    for part in range(5):
        y = TOP + HEIGHT * (1 - part / 4)
        out.append(text % (LEFT - 6, y + 4, "end", COLOURS["coded"], "%.0f" % (most * part / 4)))
        out.append(text % (LEFT + WIDTH + 6, y + 4, "start", COLOURS["done"], "%.0f" % (len(files) * part / 4)))
        out.append(text % (LEFT + WIDTH * part / 4, TOP + HEIGHT + 18, "middle", "#222222", "%.3f s" % (length * part / 4)))
    x = LEFT
    for word, colour in (("files in coding", "coded"), ("in verifying", "verified"), ("done (right)", "done")):
        out.append(text % (x, TOP + HEIGHT + 38, "start", COLOURS[colour], word))
        x += 150
    return "\n".join(out + ["</svg>", ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("lines")
    parser.add_argument("out")
    parser.add_argument("--title", default="")
    options = parser.parse_args()
    with open(options.lines, encoding="utf-8") as lines:
        files = [line for line in map(json.loads, lines) if not line.get("summary")]
    with open(options.out, "w", encoding="utf-8") as out:
        out.write(draw(files, options.title))


if __name__ == "__main__":
    main()
