#!/usr/bin/env python3
"""What Python costs: the package beside the command line and beside processes, and its goals.

    python3 tests/bench/python_rates.py BUILD [--pairs 100] [--frames 600] [--only WORD,...] [--work FOLDER]

- set: compress_set of 48 DICOM slices of 512 x 512, in a Python that is running, over `tessera compress` of the same files,
  from exec to exit. Goal: at most 1.05.
- frame: reader[i] of a .tsr of 600 frames and 315 MB, frames in an order of chance. Goal: a median of at most 5 ms.
- memory: peak memory of a process that reads these frames one after the other. Goal: at most 100 MB.
- threads: frames a second of two threads with a reader each, over those of two processes at the same time, which is the sum of
  their own. Engines have one thread. Goal: at least 0.9.

Both sides of a pair run one after the other, in turns of order. A ratio is the median over the pairs of the ratios of wall-clock
times; the quartiles stand beside it. Ratios of processor time depend less on what else the machine does. WORK is /dev/shm if
that exists, so that no disk is waited for. Says PASS or FAIL of each goal; exit status 1: a goal failed. Needs numpy.
"""
import argparse
import json
import os
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy

import machine
from memory import write_series
from program import dicom

ROOT = Path(__file__).resolve().parents[2]
SIDE, SLICES, PIECE = 512, 48, 40
TIMED_FRAMES = 300


def quartiles(values):
    if len(values) < 2:
        return values * 3
    low, middle, high = statistics.quantiles(values, n=4)
    return low, middle, high


def told(ratios):
    return '%.3f (quartiles %.3f to %.3f)' % (lambda q: (q[1], q[0], q[2]))(quartiles(ratios))


def alternate(pairs, first, second):
    """Results of two functions that run by turns, the first one first in every other turn."""
    made = []
    for turn in range(pairs):
        results = [None, None]
        for side in (0, 1) if turn % 2 == 0 else (1, 0):
            results[side] = (first, second)[side]()
        made.append(results)
    return made


# ---- The set ------------------------------------------------------------------------------------------------------------


def make_slices(folder):
    folder.mkdir()
    generator = numpy.random.default_rng(3)
    y, x = numpy.mgrid[0:SIDE, 0:SIDE]
    for number in range(SLICES):
        distance = numpy.hypot(x - 256 + number, y - 256)
        image = 1000 * (distance < 200) + 300 * (distance % 60 < 20) + generator.normal(0, 12, x.shape) * (distance < 240)
        samples = numpy.clip(image + 100, 0, 4095).astype('<u2').tobytes()
        (folder / ('%03d.dcm' % number)).write_bytes(dicom(SIDE, SIDE, 12, number, samples))


def trees(folder):
    return {path.name: path.read_bytes() for path in folder.rglob('*.tsr')}


def timed_program(program, inputs, out):
    """Seconds from exec to exit, and of processor time."""
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    argv = [program, 'compress', '-q', '--engine', 'cpu', *map(str, inputs), '-o', str(out)]
    begun = time.perf_counter()
    child = os.posix_spawn(program, argv, os.environ)
    status, used = os.wait4(child, 0)[1:]
    took = time.perf_counter() - begun
    if status != 0:
        raise SystemExit('tessera compress: status %d' % status)
    return took, used.ru_utime + used.ru_stime


def timed_call(inputs, out, on_result):
    import tessera

    shutil.rmtree(out, ignore_errors=True)
    before, begun = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    tessera.compress_set(inputs, out, on_result)
    took, after = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_SELF)
    return took, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure_set(options, work):
    make_slices(work / 'slices')
    inputs = sorted((work / 'slices').iterdir())
    good = True
    for name, on_result in (('set', None), ('set, with on_result', lambda result: None)):
        program = lambda: timed_program(options.program, inputs, work / 'by_program')
        call = lambda: timed_call(inputs, work / 'by_python', on_result)
        alternate(1, call, program)
        if trees(work / 'by_program') != trees(work / 'by_python'):
            raise SystemExit('compress_set and the command line wrote different bytes')
        made = alternate(options.pairs, call, program)
        wall = [one[0] / other[0] for one, other in made]
        processor = [one[1] / other[1] for one, other in made]
        print('%s: time over that of the command line %s; processor time %s; %d pairs of %.0f ms' % (
            name, told(wall), told(processor), len(made), 1e3 * statistics.median(other[0] for _, other in made)))
        good &= say(name, 'at most 1.05', statistics.median(wall) <= 1.05)
    return good


# ---- One file of many frames --------------------------------------------------------------------------------------------


def make_series(options, work):
    path = work / 'series.tsr'
    if not path.exists():
        write_series(work / 'series.dcm', options.frames)
        subprocess.run([options.program, 'compress', '-q', '--verify', 'none', work / 'series.dcm', '-o', path], check=True)
        (work / 'series.dcm').unlink()
    return path


def measure_frame(options, work):
    import tessera

    path = make_series(options, work)
    order = random.Random(1).choices(range(options.frames), k=TIMED_FRAMES)
    with tessera.open(path) as reader:
        bytes_a_frame, times, same = reader[0].nbytes, [], []
        for frame in order:
            begun = time.perf_counter()
            reader[frame]
            times.append(time.perf_counter() - begun)
        for _ in range(50):
            begun = time.perf_counter()
            reader[7 % options.frames]
            same.append(time.perf_counter() - begun)
    low, middle, high = (1e3 * value for value in quartiles(times))
    print('frame: %.2f ms (quartiles %.2f to %.2f), the same frame again %.2f ms; %d frames of %.0f KB' % (
        middle, low, high, 1e3 * statistics.median(same), options.frames, bytes_a_frame / 1e3))
    return say('frame', 'at most 5 ms', middle <= 5)


def child_memory(path):
    import tessera

    total = 0
    with tessera.open(path) as reader:
        for frame in reader:
            total += frame.nbytes
    peak = next(int(line.split()[1]) for line in open('/proc/self/status') if line.startswith('VmHWM'))
    print(json.dumps([total, peak]))


def measure_memory(options, work):
    path = make_series(options, work)
    total, peak = json.loads(run_child('memory', path))
    mebibytes = peak / 1024
    print('memory: peak of %.0f MiB, with Python and numpy; %.0f MB of samples from %.0f MB' % (
        mebibytes, total / 1e6, path.stat().st_size / 1e6))
    return say('memory', 'at most 100 MB', 1024 * peak <= 100e6)


# ---- Threads and processes ----------------------------------------------------------------------------------------------


def decode(path, first, count):
    import tessera

    with tessera.engine(threads=1) as engine, tessera.open(path, engine=engine) as reader:
        for frame in range(first, first + count):
            reader[frame % len(reader)]


def child_decode(path):
    """Decodes frames for each line of stdin, from the frame that it names, and says how long that took."""
    decode(path, 0, 1)
    print('ready', flush=True)
    for line in sys.stdin:
        begun = time.perf_counter()
        decode(path, int(line), PIECE)
        print(time.perf_counter() - begun, flush=True)


def time_threads(path):
    """Frames a second of two threads: the sum of their own."""
    times = [0.0, 0.0]

    def work(number):
        begun = time.perf_counter()
        decode(path, number * PIECE, PIECE)
        times[number] = time.perf_counter() - begun

    threads = [threading.Thread(target=work, args=(number,)) for number in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(PIECE / value for value in times)


def time_processes(children):
    for number, child in enumerate(children):
        child.stdin.write('%d\n' % (number * PIECE))
        child.stdin.flush()
    return sum(PIECE / float(child.stdout.readline()) for child in children)


def measure_threads(options, work):
    path = make_series(options, work)
    children = [subprocess.Popen(child_command('decode', path), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
                for _ in (0, 1)]
    for child in children:
        child.stdout.readline()
    made = alternate(options.pairs, lambda: time_threads(path), lambda: time_processes(children))
    for child in children:
        child.stdin.close()
        child.wait()
    ratios = [one / other for one, other in made]
    print('threads: of the frames of two processes %s; %d pairs; %.0f frames/s by processes' % (
        told(ratios), len(made), statistics.median(other for _, other in made)))
    return say('threads', 'at least 0.9', statistics.median(ratios) >= 0.9)


# ---- All of it ----------------------------------------------------------------------------------------------------------


def say(name, goal, is_reached):
    print('%s  %s: %s' % ('PASS' if is_reached else 'FAIL', name, goal), flush=True)
    return is_reached


def child_command(name, path):
    return [sys.executable, str(Path(__file__).resolve()), '--child', name, str(path)]


def run_child(name, path):
    return subprocess.run(child_command(name, path), check=True, stdout=subprocess.PIPE, text=True).stdout


PARTS = {'set': measure_set, 'frame': measure_frame, 'memory': measure_memory, 'threads': measure_threads}
CHILDREN = {'memory': child_memory, 'decode': child_decode}


def main():
    if sys.argv[1:2] == ['--child']:
        CHILDREN[sys.argv[2]](sys.argv[3])
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('build')
    parser.add_argument('--pairs', type=int, default=100)
    parser.add_argument('--frames', type=int, default=600)
    parser.add_argument('--only', default=','.join(PARTS))
    parser.add_argument('--work', default='/dev/shm' if os.path.isdir('/dev/shm') else None)
    options = parser.parse_args()
    build = Path(options.build).resolve()
    options.program = str(build / 'bin' / 'tessera')
    os.environ['TESSERA_LIBRARY'] = str(build / 'lib' / 'libtessera.so')
    os.environ['PYTHONPATH'] = str(ROOT / 'app' / 'python')
    sys.path.insert(0, os.environ['PYTHONPATH'])
    print('%s, %d threads; Python %s, numpy %s' % (
        machine.model(), len(os.sched_getaffinity(0)), sys.version.split()[0], numpy.__version__), flush=True)
    with tempfile.TemporaryDirectory(prefix='tessera-python-rates-', dir=options.work) as work:
        good = [PARTS[name](options, Path(work)) for name in options.only.split(',')]
    sys.exit(0 if all(good) else 1)


if __name__ == '__main__':
    main()
