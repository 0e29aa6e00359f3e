#!/usr/bin/env python3
"""What a second thread is worth: one process with two threads, beside two processes with one thread at the same time.

    python3 tests/bench/threads.py BUILD FRAMES [--pairs 9] [--effort 5] [--images 3] [--only WORD] [--png FILE] [--work FOLDER]

Inputs are one large image (the largest files of FRAMES, PGM or PPM, and a synthetic PNG of 3840 x 2160), and a folder of small
files (crops of 256 x 256 from FRAMES). Verbs are compress --verify none, compress, and test. Each of the two processes has its
own copy of the input and its own output.

Both sides of a pair run one after the other, in turns of order. The ratio of a pair is the throughput of two threads over that
of two processes together, which is the sum of their own. Times are from the start of a process to its end. Prints the median of
the ratios and their quartiles, and medians of times. On a machine that others use, a single pair may be far off. WORK is
/dev/shm if that exists, so that no disk is waited for.
"""
import argparse
import os
import random
import shutil
import statistics
import struct
import tempfile
import time
import zlib

from program import read_pgm

import machine

SMALL_SIDE, SMALL_FILES = 256, 200


def read_samples(path):
    """Columns, rows and bytes of a sample's pixel, and the samples."""
    data = open(path, 'rb').read(2)
    if data == b'P6':
        return None
    columns, rows, largest, samples = read_pgm(path)
    return columns, rows, 1 if largest < 256 else 2, largest, samples


def make_small(frames, folder):
    """Crops from the middle of frames, each with other lowest bits."""
    os.mkdir(folder)
    rng, pictures = random.Random(1), []
    for name in sorted(os.listdir(frames)):
        picture = read_samples(os.path.join(frames, name)) if name.endswith('.pgm') else None
        if picture and picture[0] >= SMALL_SIDE and picture[1] >= SMALL_SIDE:
            pictures.append(picture)
    for number in range(SMALL_FILES):
        columns, rows, size, largest, samples = pictures[number * len(pictures) // SMALL_FILES]
        left, top = rng.randrange(columns - SMALL_SIDE + 1), rng.randrange(rows - SMALL_SIDE + 1)
        crop = b''.join(samples[((top + y) * columns + left) * size:((top + y) * columns + left + SMALL_SIDE) * size]
                        for y in range(SMALL_SIDE))
        with open(os.path.join(folder, '%03d.pgm' % number), 'wb') as out:
            out.write(b'P5\n%d %d\n%d\n' % (SMALL_SIDE, SMALL_SIDE, largest) + crop)


def make_png(path):
    """3840 x 2160 in RGB: gradients, edges and noise."""
    columns, rows = 3840, 2160
    rng = random.Random(1)
    noise = [bytes(rng.randrange(6) for _ in range(3 * columns)) for _ in range(16)]
    chunk = lambda name, data: struct.pack('>I', len(data)) + name + data + struct.pack('>I', zlib.crc32(name + data))
    packer, data = zlib.compressobj(6), b''
    for y in range(rows):
        base = bytes((x // 24 + y // 16 + 60 * ((x // 400 + y // 300) % 2) + 20 * c) % 240 for x in range(columns) for c in range(3))
        grain = noise[rng.randrange(16)]
        row = bytes(map(int.__add__, base, grain))
        data += packer.compress(b'\1' + row[:3] + bytes((row[i] - row[i - 3]) & 255 for i in range(3, len(row))))
    data += packer.flush()
    with open(path, 'wb') as out:
        out.write(b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', struct.pack('>IIBBBBB', columns, rows, 8, 2, 0, 0, 0)) +
                  chunk(b'IDAT', data) + chunk(b'IEND', b''))


def finish(commands):
    """Seconds that each of some commands takes, all started at once."""
    quiet = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    begun = time.perf_counter()
    children = [os.posix_spawn(c[0], c, os.environ, file_actions=quiet) for c in commands]
    took = []
    for _ in children:
        status = os.wait()[1]
        took.append(time.perf_counter() - begun)
        if status:
            raise SystemExit('failed: %s' % ' '.join(commands[0]))
    return took


class Bench:
    def __init__(self, options, work):
        self.program = os.path.join(os.path.abspath(options.build), 'bin', 'tessera')
        self.options, self.work = options, work

    def copies(self, source):
        made = []
        for number in range(2):
            folder = os.path.join(self.work, 'copy%d' % number)
            shutil.rmtree(folder, ignore_errors=True)
            os.mkdir(folder)
            target = os.path.join(folder, os.path.basename(source))
            shutil.copytree(source, target) if os.path.isdir(source) else shutil.copy(source, target)
            made.append(target)
        return made

    def command(self, verb, source, threads):
        output = source + '.out'
        recurses = ['-r'] if os.path.isdir(source) else []
        if verb[0] == 'test':
            return [self.program, 'test', '-q', *recurses, '-T', str(threads), source + '.packed']
        shutil.rmtree(output, ignore_errors=True)
        if os.path.exists(output):
            os.unlink(output)
        return [self.program, *verb, '-q', '-%d' % self.options.effort, *recurses, '-T', str(threads), '-o', output, source]

    def measure(self, what, source):
        both = self.copies(source)
        for copy in both:
            recurses = ['-r'] if os.path.isdir(copy) else []
            finish([[self.program, 'compress', '-q', '-%d' % self.options.effort, *recurses, '-o', copy + '.packed', copy]])
        for verb in (['compress', '--verify', 'none'], ['compress'], ['test']):
            ratios, threads, processes = [], [], []
            for pair in range(self.options.pairs):
                for side in ((0, 1) if pair % 2 else (1, 0)):
                    if side == 0:
                        threads += finish([self.command(verb, both[0], 2)])
                    else:
                        rates = [1 / seconds for seconds in finish([self.command(verb, copy, 1) for copy in both])]
                        processes.append(2 / sum(rates))
                ratios.append(processes[-1] / 2 / threads[-1])
            low, middle, high = statistics.quantiles(ratios, n=4)
            print('%-28s %-23s ratio %.3f (%.3f to %.3f)   two threads %7.1f ms, two processes %7.1f ms' %
                  (what, ' '.join(verb), middle, low, high, 1e3 * statistics.median(threads), 1e3 * statistics.median(processes)),
                  flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('build')
    parser.add_argument('frames')
    parser.add_argument('--pairs', type=int, default=9)
    parser.add_argument('--effort', type=int, default=5)
    parser.add_argument('--images', type=int, default=3)
    parser.add_argument('--only', default='', help='of the inputs, those whose names have this word')
    parser.add_argument('--png', action='append', default=[], help='another large image; may be given again')
    parser.add_argument('--work', default='/dev/shm' if os.path.isdir('/dev/shm') else None)
    options = parser.parse_args()
    print('%s, %d processors, load %.1f, effort %d, %d pairs' %
          (machine.model(), os.cpu_count(), os.getloadavg()[0], options.effort, options.pairs))
    frames = [os.path.join(options.frames, name) for name in os.listdir(options.frames)]
    largest = sorted((f for f in frames if f.endswith(('.pgm', '.ppm'))), key=os.path.getsize)[-options.images:]
    with tempfile.TemporaryDirectory(dir=options.work) as work:
        bench = Bench(options, work)
        for path in reversed(largest):
            if options.only in os.path.basename(path):
                bench.measure(os.path.basename(path)[:28], path)
        for path in options.png:
            bench.measure(os.path.basename(path), path)
        if options.only in 'synthetic.png':
            make_png(os.path.join(work, 'synthetic.png'))
            bench.measure('synthetic.png', os.path.join(work, 'synthetic.png'))
        if options.only in 'small':
            make_small(options.frames, os.path.join(work, 'small'))
            bench.measure('small (%d files)' % SMALL_FILES, os.path.join(work, 'small'))


if __name__ == '__main__':
    main()
