#!/usr/bin/env python3
"""What a second thread is worth: one process with two threads, beside two processes with one thread at the same time.

    python3 tests/bench/threads.py BUILD FRAMES [--pairs 9] [--effort 5] [--images 3] [--only WORD] [--png FILE] [--work FOLDER]
                                   [--row N]

Inputs are one large image (the largest files of FRAMES, PGM or PPM, and two synthetic PNGs of 3840 x 2160), and a folder of
small files (crops of 256 x 256 from FRAMES). In noisy.png no row has another's noise, and most of it is that of brightness: like
a photograph it is coded as samples. In synthetic.png 16 rows of noise come again: zstd makes less of it, so it is packed.

Verbs are compress --verify none, compress, and test. Each of the two processes has its own copy of the input and its own output.

Both sides of a pair run one after the other, in turns of order. The ratio of a pair is the throughput of two threads over that
of two processes together, which is the sum of their own. Times are from the start of a process to its end. Prints the median of
the ratios and their quartiles, and medians of times. On a machine that others use, a single pair may be far off. WORK is
/dev/shm if that exists, so that no disk is waited for.

--row N: the same by the Python package, which each process has loaded: the large image N times, one after the other, without the
start and the end of a process. The third verb is restore_file then.
"""
import argparse
import multiprocessing
import os
import random
import shutil
import statistics
import struct
import sys
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


def noise_row(rng, columns):
    """RGB: 12 levels of brightness, and 3 of each colour."""
    row = bytearray(3 * columns)
    row[0::3] = row[1::3] = row[2::3] = rng.randbytes(columns).translate(bytes(i % 12 for i in range(256)))
    return map(int.__add__, row, rng.randbytes(3 * columns).translate(bytes(i % 3 for i in range(256))))


def make_png(path, repeats):
    """3840 x 2160 in RGB: gradients, edges and noise, which repeats or not."""
    columns, rows = 3840, 2160
    rng = random.Random(1)
    noise = [bytes(rng.randrange(6) for _ in range(3 * columns)) for _ in range(16)]
    chunk = lambda name, data: struct.pack('>I', len(data)) + name + data + struct.pack('>I', zlib.crc32(name + data))
    packer, data = zlib.compressobj(6), b''
    for y in range(rows):
        base = bytes((x // 24 + y // 16 + 60 * ((x // 400 + y // 300) % 2) + 20 * c) % 240 for x in range(columns) for c in range(3))
        grain = noise[rng.randrange(16)] if repeats else noise_row(rng, columns)
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


def work_in_row(options, threads, source, orders, answers):
    """A process that does what it is told, N times one after the other, and says how long it took."""
    import tessera
    engine = tessera.Engine(threads=threads)
    compress = lambda verify, output: tessera.compress_file(source, output, options.effort, verify=verify, engine=engine)
    verbs = {'compress --verify none': lambda output: compress('none', output), 'compress': lambda output: compress('cpu', output),
             'restore': lambda output: tessera.restore_file(source + '.packed', output, engine=engine)}
    outputs = ['%s.row%d' % (source, number) for number in range(options.row)]
    for verb in iter(orders.get, None):
        begun = time.perf_counter()
        for output in outputs:
            verbs[verb](output)
        answers.put(time.perf_counter() - begun)
        for output in outputs:
            os.unlink(output)


class Row:
    """The processes of --row: one with two threads, and two with one."""

    def __init__(self, options, sources):
        self.orders, self.answers, self.processes = [], [], []
        for threads, source in ((2, sources[0]), (1, sources[0] + '.other'), (1, sources[1])):
            self.orders.append(multiprocessing.Queue())
            self.answers.append(multiprocessing.Queue())
            arguments = (options, threads, source, self.orders[-1], self.answers[-1])
            self.processes.append(multiprocessing.Process(target=work_in_row, args=arguments))
            self.processes[-1].start()

    def finish(self, verb, workers):
        for worker in workers:
            self.orders[worker].put(verb)
        return [self.answers[worker].get() for worker in workers]

    def end(self):
        for orders in self.orders:
            orders.put(None)
        for process in self.processes:
            process.join()


def say(what, verb, ratios, threads, processes):
    low, middle, high = statistics.quantiles(ratios, n=4)
    print('%-28s %-23s ratio %.3f (%.3f to %.3f)   two threads %7.1f ms, two processes %7.1f ms' %
          (what, verb, middle, low, high, 1e3 * statistics.median(threads), 1e3 * statistics.median(processes)), flush=True)


def in_turns(pairs, two_threads, two_processes):
    """Ratios, seconds of two threads, and seconds of two processes."""
    ratios, threads, processes = [], [], []
    for pair in range(pairs):
        for side in ((0, 1) if pair % 2 else (1, 0)):
            if side == 0:
                threads += two_threads()
            else:
                processes.append(2 / sum(1 / seconds for seconds in two_processes()))
        ratios.append(processes[-1] / 2 / threads[-1])
    return ratios, threads, processes


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
        if self.options.row and not os.path.isdir(source):
            self.measure_row(what, both)
            return
        for verb in (['compress', '--verify', 'none'], ['compress'], ['test']):
            say(what, ' '.join(verb), *in_turns(self.options.pairs, lambda: finish([self.command(verb, both[0], 2)]),
                                                lambda: finish([self.command(verb, copy, 1) for copy in both])))

    def measure_row(self, what, both):
        for suffix in ('', '.packed'):
            shutil.copy(both[0] + suffix, both[0] + '.other' + suffix)
        row = Row(self.options, both)
        for verb in ('compress --verify none', 'compress', 'restore'):
            row.finish(verb, [0, 1, 2]) # all have their memory then
            ratios, threads, processes = in_turns(self.options.pairs, lambda: row.finish(verb, [0]), lambda: row.finish(verb, [1, 2]))
            say(what, verb, ratios, [t / self.options.row for t in threads], [t / self.options.row for t in processes])
        row.end()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('build')
    parser.add_argument('frames')
    parser.add_argument('--pairs', type=int, default=9)
    parser.add_argument('--effort', type=int, default=5)
    parser.add_argument('--images', type=int, default=3)
    parser.add_argument('--only', default='', help='of the inputs, those whose names have this word')
    parser.add_argument('--png', action='append', default=[], help='another large image; may be given again')
    parser.add_argument('--row', type=int, default=0, help='images one after the other in a process')
    parser.add_argument('--work', default='/dev/shm' if os.path.isdir('/dev/shm') else None)
    options = parser.parse_args()
    os.environ['TESSERA_LIBRARY'] = os.path.join(os.path.abspath(options.build), 'lib', 'libtessera.so')
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'app', 'python'))
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
        for name in ('noisy.png', 'synthetic.png'):
            if options.only in name:
                make_png(os.path.join(work, name), repeats=name == 'synthetic.png')
                bench.measure(name, os.path.join(work, name))
        if options.only in 'small':
            make_small(options.frames, os.path.join(work, 'small'))
            bench.measure('small (%d files)' % SMALL_FILES, os.path.join(work, 'small'))


if __name__ == '__main__':
    main()
