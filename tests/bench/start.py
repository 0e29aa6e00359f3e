#!/usr/bin/env python3
"""What the start of the program costs.

    python3 tests/bench/start.py BUILD [--old OTHER_BUILD] [--runs 60] [--dicom FILE]

Prints, for each program, the median and the lowest quarter of
- the milliseconds from exec to the first byte read of a PNG and of a PGM (strace, which traces opening and reading alone);
- the milliseconds from exec to exit of --version, and of a compress of a PNG, a PGM, and a DICOM slice of 512 x 512, whose
  outputs are synced to the disk of temporary files, and the processor time of these;
- the shared libraries that are opened meanwhile.
The programs take turns, so that they find the machine in the same state. The lowest quarter is the time on an idle machine.
"""
import argparse
import os
import random
import re
import statistics
import struct
import subprocess
import tempfile
import time
import zlib

from program import dicom

import machine

SIDE = 512


def picture():
    """Samples of 12 bits: a disc with noise."""
    rng = random.Random(1)
    return [int(1000 * ((x - 256) ** 2 + (y - 256) ** 2 < 50000)) + rng.randrange(60) for y in range(SIDE) for x in range(SIDE)]


def chunk(name, data):
    return struct.pack('>I', len(data)) + name + data + struct.pack('>I', zlib.crc32(name + data))


def make_inputs(work, dicom_file):
    samples = picture()
    words = struct.pack('>%dH' % len(samples), *samples)
    rows = b''.join(b'\0' + words[i:i + 2 * SIDE] for i in range(0, len(words), 2 * SIDE))
    files = {
        'png': b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', struct.pack('>IIBBBBB', SIDE, SIDE, 16, 0, 0, 0, 0)) +
               chunk(b'IDAT', zlib.compress(rows, 6)) + chunk(b'IEND', b''),
        'pgm': b'P5\n%d %d\n65535\n' % (SIDE, SIDE) + words,
        'dcm': open(dicom_file, 'rb').read() if dicom_file else
               dicom(SIDE, SIDE, 12, 1, struct.pack('<%dH' % len(samples), *samples)),
    }
    for ending, data in files.items():
        with open(os.path.join(work, 'input.' + ending), 'wb') as out:
            out.write(data)


def command(program, what, work):
    if what == '--version':
        return [program, what]
    output = os.path.join(work, 'output.tsr')
    if os.path.exists(output):
        os.unlink(output)
    return [program, 'compress', '-q', os.path.join(work, 'input.' + what), '-o', output]


def whole(argv):
    """Milliseconds from exec to exit, and of processor time."""
    begun = time.perf_counter()
    child = os.posix_spawn(argv[0], argv, os.environ, file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)])
    status, used = os.wait4(child, 0)[1:]
    took = 1e3 * (time.perf_counter() - begun)
    if status != 0:
        raise SystemExit('%s: status %d' % (' '.join(argv), status))
    return took, 1e3 * (used.ru_utime + used.ru_stime)


def trace(argv, calls):
    return subprocess.run(['strace', '--seccomp-bpf', '-f', '-y', '-ttt', '-e', 'trace=' + calls, '-o', '/dev/stderr', *argv],
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=True).stderr.splitlines()


def first_read(argv, path):
    """Milliseconds from exec to the first byte read of a file. No other call is traced, since each takes time."""
    lines = [line.split(None, 2)[1:] for line in trace(argv, 'execve,pread64')]
    start = next(float(at) for at, call in lines if call.startswith('execve('))
    return 1e3 * (next(float(at) for at, call in lines if call.startswith('pread64(') and path in call) - start)


def count_libraries(argv):
    return sum(1 for line in trace(argv, 'openat') if re.search(r'\.so[.0-9]*", .* = \d', line))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('build')
    parser.add_argument('--old')
    parser.add_argument('--runs', type=int, default=60)
    parser.add_argument('--dicom')
    options = parser.parse_args()
    builds = [b for b in (options.old, options.build) if b]
    programs = [os.path.join(os.path.abspath(b), 'bin', 'tessera') for b in builds]
    print('%s, %d processors, load %.1f' % (machine.model(), os.cpu_count(), os.getloadavg()[0]))
    with tempfile.TemporaryDirectory() as work:
        make_inputs(work, options.dicom)
        times, libraries = {}, {}
        for _ in range(options.runs):
            for what in ('--version', 'png', 'pgm', 'dcm'):
                for program in programs:
                    took, used = whole(command(program, what, work))
                    times.setdefault((what, 'to exit', program), []).append(took)
                    times.setdefault((what, 'processor', program), []).append(used)
                    if what != '--version':
                        first = first_read(command(program, what, work), 'input.' + what)
                        times.setdefault((what, 'to first read', program), []).append(first)
        for what in ('--version', 'png', 'pgm', 'dcm'):
            for program in programs:
                libraries[what, program] = count_libraries(command(program, what, work))
    for what, until, program in sorted(times, key=lambda key: (key[1], key[0], programs.index(key[2]))):
        values = sorted(times[what, until, program])
        print('%-13s %-9s median %6.2f ms, lowest quarter %6.2f ms, %d libraries   %s' %
              (until, what, statistics.median(values), values[len(values) // 4], libraries[what, program], program))


if __name__ == '__main__':
    main()
