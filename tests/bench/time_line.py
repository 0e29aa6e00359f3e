#!/usr/bin/env python3
"""Draws how a set is compressed in time: what each engine has finished, from the program's start to its end.

usage: time_line.py SVG --frames FOLDER [--bin build/bin] [--count 2000] [--kind dicom|pgm|files] [--effort 5]
                    [--options "--qp 20"] [--work /dev/shm/time_line]

The set is that of program.py. Each of the runs takes it three times; the one with the median time is drawn. A file counts
from the moment that its JSON line names, in steps of a millisecond; lines are printed in the files' order, so a file that ends
before another one in front of it counts with that.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import time

import machine
import program

RUNS = ('compress cpu verify cpu', 'compress cuda verify cuda', 'compress auto verify cuda')
COLOURS = ('#1b6ca8', '#c1502e', '#3d8b40')
WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 760, 380, 64, 24, 200, 48


def timed(command):
    """Seconds and MB finished by then, file by file, and the seconds of the whole run."""
    start = time.time()
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    whole = time.time() - start
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    summary, lines = lines[-1], lines[:-1]
    points, megabytes = [], 0.0
    for line in sorted(lines, key=lambda line: line['at']):
        megabytes += line['bytes_in'] / 1e6
        points.append((line['at'] - start, megabytes))
    return points, whole, summary['start_s']


def at_share(points, share):
    """When this share of the MB was finished."""
    return next(seconds for seconds, megabytes in points if megabytes >= share * points[-1][1])


def draw(path, title, runs):
    seconds = max(whole for _, whole, _ in runs.values()) * 1.02
    most = max(points[-1][1] for points, _, _ in runs.values())
    x = lambda s: LEFT + (WIDTH - LEFT - RIGHT) * s / seconds
    y = lambda mb: HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * mb / most
    out = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">' % (WIDTH, HEIGHT),
           '<rect width="100%" height="100%" fill="white"/>', '<text x="%d" y="15">%s</text>' % (LEFT, title)]
    step = next(s for s in (0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50) if seconds / s <= 10)
    for n in range(int(seconds / step) + 1):
        out.append('<path d="M%.1f %dV%d" stroke="#ddd"/><text x="%.1f" y="%d" text-anchor="middle">%g s</text>' % (
            x(n * step), TOP, HEIGHT - BOTTOM, x(n * step), HEIGHT - BOTTOM + 16, round(n * step, 2)))
    for part in range(5):
        out.append('<path d="M%d %.1fH%d" stroke="#ddd"/><text x="%d" y="%.1f" text-anchor="end">%.0f MB</text>' % (
            LEFT, y(most * part / 4), WIDTH - RIGHT, LEFT - 6, y(most * part / 4) + 4, most * part / 4))
    for n, (name, (points, whole, waking)) in enumerate(runs.items()):
        ends = {}
        for second, megabytes in points:
            ends[round(x(second), 1)] = y(megabytes)
        line = 'M%.1f %.1f' % (x(0), y(0)) + ''.join('L%.1f %.1f' % end for end in sorted(ends.items()))
        out.append('<path d="%s" fill="none" stroke="%s" stroke-width="2"/>' % (line, COLOURS[n]))
        if waking > 0.01:
            out.append('<circle cx="%.1f" cy="%.1f" r="4" fill="%s"/>' % (x(waking), y(0), COLOURS[n]))
        out.append('<text x="%d" y="%d" fill="%s">%s</text><text x="%d" y="%d">ends after %.2f s</text>' % (
            WIDTH - RIGHT + 8, TOP + 16 + 40 * n, COLOURS[n], name, WIDTH - RIGHT + 8, TOP + 32 + 40 * n, whole))
    out.append('<text x="%d" y="%d">a dot: the GPU is awake</text></svg>' % (LEFT, HEIGHT - 10))
    with open(path, 'w', encoding='utf-8') as file:
        file.write('\n'.join(out) + '\n')


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('svg')
    program.add_arguments(parser, '/dev/shm/time_line')
    o = parser.parse_args()
    o.gpu, o.threads = None, len(os.sched_getaffinity(0))
    series = program.begin(o)
    runs = {}
    for name in RUNS:
        tried = []
        for _ in range(3):
            shutil.rmtree(series.packed, ignore_errors=True)
            try:
                tried.append(timed(series.commands[name]))
            except subprocess.CalledProcessError as error:
                print('%s: exit status %d' % (name, error.returncode), file=sys.stderr)
                break
        if tried:
            runs[name] = sorted(tried, key=lambda run: run[1])[len(tried) // 2]
    title = '%d %s files, -%d %s: %s, %d threads' % (o.count, o.kind, o.effort, o.options, machine.model(), o.threads)
    print(title)
    print('| | GPU awake | first file | half | all | end |\n|---|---|---|---|---|---|')
    for name, (points, whole, waking) in runs.items():
        print('| %s | %s | %.3f | %.3f | %.3f | %.3f |' % (
            name, '%.3f' % waking if waking > 0.01 else '', points[0][0], at_share(points, 0.5), points[-1][0], whole))
    draw(o.svg, title.replace('&', '&amp;').replace('<', '&lt;'), runs)
    shutil.rmtree(o.work)


if __name__ == '__main__':
    main()
