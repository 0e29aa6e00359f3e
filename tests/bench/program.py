#!/usr/bin/env python3
"""The whole program on a series of slices: rates, and how the time is spent.

    python3 tests/bench/program.py --bin build/bin --frames FOLDER [--count 2000] [--kind dicom|pgm|files] [--effort 5]
                                   [--options "--qp 20"] [--work /dev/shm/series] [--only NAME,...] [--turns 5]
                                   [--gpu N,...] [--threads N]

FOLDER has 16-bit PGM files of one size. They are repeated until there are COUNT files; in each copy some samples have other
lowest bits. With --kind files it has files of any format, which are repeated as they are, and rates are of their samples'
bytes. They are read once before anything is timed, so they come from the page cache. A first round of all runs checks
their results: outputs of all engines must be the same, and restored files must be the input, or with loss those that the
first run restored. Then each turn has every run once, in the order of the table, so that runs that are compared find the
machine in the same state: its rates vary by a tenth from minute to minute. NAME chooses the runs whose names begin with it;
those of --engine auto run only if they are chosen. Runs that read compressed files need a run that compresses. OPTIONS are
further words for compress.

Rates are medians over the turns, with the lowest and the highest, in MB of input files a second (of restored files for test
and decompress). `+start` includes the waking of the GPU; the other rates do not. Ratios are ratios of medians, with the lowest
and the highest of a turn: to plain reading, to the CPU engine with the same check, and to `test cpu`, the CPU decoder's own
rate. The other figures are of the turn with the median rate. Shares are the seconds of the program's threads in a stage, of
all its threads' seconds of work on files, without waiting for a GPU or a processor. Kernels and transfers are seconds on the
GPUs' streams, of the wall time, so batches that overlap add up to more. Microseconds a file are user and system time of the
process: the median of the turns, with the least.
"""
import argparse
import array
import filecmp
import json
import os
import random
import resource
import shutil
import statistics
import struct
import subprocess
import sys
import threading
import time

import machine


def read_pgm(path):
    """Columns, rows, largest value and big-endian samples of a P5 file without comments."""
    data = open(path, 'rb').read()
    fields, at = [], 0
    while len(fields) < 4:
        end = at
        while not data[end:end + 1].isspace():
            end += 1
        fields.append(data[at:end])
        at = end + 1
        while len(fields) < 4 and data[at:at + 1].isspace():
            at += 1
    return int(fields[1]), int(fields[2]), int(fields[3]), data[at:]


def element(group, number, vr, value):
    """A DICOM data element, explicit VR, little endian."""
    if len(value) % 2:
        value += b'\0' if vr in (b'UI', b'OB') else b' '
    head = struct.pack('<HH2s', group, number, vr)
    long_form = vr in (b'OB', b'OW')
    return head + (struct.pack('<HI', 0, len(value)) if long_form else struct.pack('<H', len(value))) + value


def dicom(columns, rows, bits, number, samples):
    """A CT slice with the elements that a reader needs. Samples are little-endian."""
    uid = b'1.2.826.0.1.3680043.10.1.%d' % (number + 1)
    meta = element(2, 1, b'OB', b'\0\1') + element(2, 2, b'UI', b'1.2.840.10008.5.1.4.1.1.2')
    meta += element(2, 3, b'UI', uid) + element(2, 0x10, b'UI', b'1.2.840.10008.1.2.1')
    meta += element(2, 0x12, b'UI', b'1.2.826.0.1.3680043.10.1')
    short = lambda g, n, v: element(g, n, b'US', struct.pack('<H', v))
    body = element(8, 8, b'CS', b'ORIGINAL\\PRIMARY\\AXIAL') + element(8, 0x16, b'UI', b'1.2.840.10008.5.1.4.1.1.2')
    body += element(8, 0x18, b'UI', uid) + element(8, 0x60, b'CS', b'CT') + element(0x10, 0x10, b'PN', b'Bench^Slice')
    body += element(0x20, 0x13, b'IS', b'%d' % (number + 1)) + short(0x28, 2, 1)
    body += element(0x28, 4, b'CS', b'MONOCHROME2') + short(0x28, 0x10, rows) + short(0x28, 0x11, columns)
    body += short(0x28, 0x100, 16) + short(0x28, 0x101, bits) + short(0x28, 0x102, bits - 1) + short(0x28, 0x103, 0)
    body += element(0x7fe0, 0x10, b'OW', samples)
    return bytes(128) + b'DICM' + element(2, 0, b'UL', struct.pack('<I', len(meta))) + meta + body


def noise(samples):
    """Big-endian words. By a fixed seed, one in 16 has its lowest bit set."""
    bits, generator = 16 * samples, random.Random(1)
    words = int.from_bytes(b'\0\1' * samples, 'big')
    for _ in range(4):
        words &= generator.getrandbits(bits)
    return words.to_bytes(2 * samples, 'big')


def copy_files(frames, count, folder):
    names = sorted(os.listdir(frames))
    os.makedirs(folder)
    for i in range(count):
        shutil.copyfile(os.path.join(frames, names[i % len(names)]), os.path.join(folder, '%05d_%s' % (i, names[i % len(names)])))


def make_series(frames, count, kind, folder):
    if kind == 'files':
        return copy_files(frames, count, folder)
    sources = [read_pgm(os.path.join(frames, name)) for name in sorted(os.listdir(frames)) if name.endswith('.pgm')]
    sources = [s for s in sources if s[2] > 255 and s[:2] == sources[0][:2]]
    columns, rows = sources[0][:2]
    size = 2 * columns * rows
    changes = noise(columns * rows + count)
    os.makedirs(folder)
    for i in range(count):
        most, data = sources[i % len(sources)][2:]
        samples = data[:size]
        if i >= len(sources):
            changed = int.from_bytes(samples, 'big') ^ int.from_bytes(changes[2 * i:2 * i + size], 'big')
            samples = changed.to_bytes(size, 'big')
        name = os.path.join(folder, 'slice_%05d.%s' % (i, 'dcm' if kind == 'dicom' else 'pgm'))
        with open(name, 'wb') as file:
            if kind == 'dicom':
                words = array.array('H', samples)
                words.byteswap()
                file.write(dicom(columns, rows, most.bit_length(), i, words.tobytes()))
            else:
                file.write(b'P5\n%d %d\n%d\n' % (columns, rows, most) + samples)


def read_all(folder, threads):
    """The seconds in which all files of a folder are read."""
    names = [os.path.join(folder, name) for name in sorted(os.listdir(folder))]

    def read(first):
        buffer = bytearray(1 << 21)
        for name in names[first::threads]:
            descriptor = os.open(name, os.O_RDONLY)
            while os.readv(descriptor, [buffer]) > 0:
                pass
            os.close(descriptor)

    start = time.monotonic()
    workers = [threading.Thread(target=read, args=(i,)) for i in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return time.monotonic() - start


def run(command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.monotonic()
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    whole_s = time.monotonic() - start
    if done.returncode != 0:
        sys.exit('%s: exit status %d: %s' % (' '.join(command), done.returncode, done.stderr.decode()[-500:]))
    summary = json.loads(done.stdout.splitlines()[-1])
    summary['whole_s'] = whole_s
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    summary['user_s'] = after.ru_utime - before.ru_utime
    summary['system_s'] = after.ru_stime - before.ru_stime
    summary['faults'] = after.ru_minflt - before.ru_minflt
    summary['sleeps'] = after.ru_nvcsw - before.ru_nvcsw
    return summary


def shares(s, decodes_only):
    """Shares of the threads' seconds of work: reading, copying, verifying, writing, and the rest, which is coding on the CPU,
    hashing and waiting for a processor."""
    get = lambda name: s.get(name) or 0.0
    copying = get('encode_copy_s') + get('decode_copy_s')
    waiting = get('encode_wait_s') + get('decode_wait_s') + get('wait_s')
    in_verify = get('decode_copy_s') + get('decode_wait_s') + (get('wait_s') if decodes_only else 0.0)
    verifying = max(0.0, get('verify_s') - in_verify - (get('read_s') + get('write_s') if decodes_only else 0.0))
    whole = get('encode_s') + get('verify_s') - waiting
    if decodes_only:
        whole = get('verify_s') - waiting
    parts = {'read': get('read_s'), 'copy': copying, 'verify': verifying, 'write': get('write_s')}
    text = ['%s %4.1f %%' % (name, 100 * value / whole) for name, value in parts.items()]
    text.append('rest %4.1f %%' % (100 * max(0.0, whole - sum(parts.values())) / whole))
    text.append('of %.2f s | waiting %.2f s | processors: program %.2f s, system %.2f s, %d page faults, %d sleeps' % (
        whole, waiting, s['user_s'], s['system_s'], s['faults'], s['sleeps']))
    for way in 'encode', 'decode':
        if get(way + '_batches'):
            text.append('| %s: kernels %.0f %%, transfers %.0f %%, %.0f slices a batch' % (
                way, 100 * get(way + '_kernel_s') / s['wall_s'], 100 * get(way + '_transfer_s') / s['wall_s'],
                get(way + '_batch_frames') / get(way + '_batches')))
    return ', '.join(text)


def same_trees(a, b):
    comparison = filecmp.dircmp(a, b)
    names = sorted(os.listdir(a))
    return names == sorted(os.listdir(b)) and comparison is not None and not filecmp.cmpfiles(a, b, names, False)[1]


def spread(values):
    return '(%.2f to %.2f)' % (min(values), max(values))


class Series:
    """The folders of a series, of its compressed and of its restored files, and the runs from one to the next."""

    def __init__(self, options):
        tessera = os.path.join(options.bin, 'tessera')
        self.series, self.packed, self.back, self.reference, self.restored = (
            os.path.join(options.work, name) for name in ('series', 'packed', 'back', 'reference', 'restored'))
        self.lossy = any(word in options.options for word in ('--qp', '--psnr', '--quality', '--max-error', '--samples-only'))
        common = ['-r', '-q', '--json', '-T', str(options.threads)]
        gpus = lambda engine: ['--gpu', options.gpu] if options.gpu and engine == 'cuda' else []
        compress = lambda engine, verify: [tessera, 'compress', *common, '-f', '-%d' % options.effort, *options.options.split(),
                                           '--engine', engine, '--verify', verify, *gpus(engine), self.series, '-o', self.packed]
        restore = lambda verb, engine: [tessera, verb, *common, '--engine', engine, *gpus(engine), self.packed,
                                        *(['-f', '-o', self.back] if verb == 'decompress' else [])]
        self.commands = {
            'compress cpu verify cpu': compress('cpu', 'cpu'),
            'compress cuda verify cuda': compress('cuda', 'cuda'),
            'compress cuda verify none': compress('cuda', 'none'),
            'compress cuda verify cpu': compress('cuda', 'cpu'),
            'test cpu': restore('test', 'cpu'),
            'test cuda': restore('test', 'cuda'),
            'decompress cpu': restore('decompress', 'cpu'),
            'decompress cuda': restore('decompress', 'cuda'),
            'compress auto verify cpu': compress('auto', 'cpu'),
            'compress auto verify cuda': compress('auto', 'cuda'),
            'test auto': restore('test', 'auto'),
            'decompress auto': restore('decompress', 'auto'),
        }

    def run(self, name):
        """Runs the command of this name. Returns what the program reports."""
        if name.startswith('compress'):
            shutil.rmtree(self.packed, ignore_errors=True)
        if name.startswith('decompress'):
            shutil.rmtree(self.back, ignore_errors=True)
        return run(self.commands[name])

    def check(self, name):
        """Ends the program if a run has just written other files than other runs, or restored other files than the input."""
        if name.startswith('compress') and not os.path.isdir(self.reference):
            shutil.copytree(self.packed, self.reference)
        elif name.startswith('compress') and not same_trees(self.reference, self.packed):
            sys.exit('%s: other bytes' % name)
        if name.startswith('decompress'):
            if self.lossy and not os.path.isdir(self.restored):
                shutil.copytree(self.back, self.restored)
            if not same_trees(self.restored if self.lossy else self.series, self.back):
                sys.exit('%s: what comes back is not the input, or not what came back before' % name)


def report(name, rates, turns, megabytes, read_rate, count):
    """The lines on a run. rates: those of all runs, by turn."""
    own = rates[name]
    median = statistics.median(own)
    shown = turns[min(range(len(own)), key=lambda turn: abs(own[turn] - median))][name]
    text = '%-26s %6.0f MB/s (%.0f to %.0f; +start %.0f), %.2f x reading' % (
        name, median, min(own), max(own), megabytes / shown['whole_s'], median / read_rate)
    bases = {'compress cpu verify cpu'} if name.startswith('compress') else {'test cpu'}
    if name == 'compress cuda verify cpu':
        bases.add('test cpu')
    for base in sorted(bases & rates.keys() - {name}):
        ratios = [a / b for a, b in zip(own, rates[base])]
        text += ', %.3f x %s %s' % (median / statistics.median(rates[base]), base, spread(ratios))
    print(text)
    file_us = sorted(1e6 * (turn[name]['user_s'] + turn[name]['system_s']) / count for turn in turns)
    print('    %.0f us a file (%.0f)' % (statistics.median(file_us), file_us[0]))
    print('    ' + shares(shown, not name.startswith('compress')))
    if shown.get('fallbacks'):
        print('    %d files by the CPU engine' % shown['fallbacks'])


def add_arguments(parser, work):
    """Those that say what set there is and how it is compressed; work: the default of its folder."""
    parser.add_argument('--bin', default='build/bin')
    parser.add_argument('--frames', required=True)
    parser.add_argument('--count', type=int, default=2000)
    parser.add_argument('--kind', default='dicom')
    parser.add_argument('--effort', type=int, default=5)
    parser.add_argument('--options', default='')
    parser.add_argument('--work', default=work)


def begin(o):
    """Makes the set, in a new folder of work, and reads it once. Returns its Series."""
    shutil.rmtree(o.work, ignore_errors=True)
    os.makedirs(o.work)
    series = Series(o)
    make_series(o.frames, o.count, o.kind, series.series)
    read_all(series.series, o.threads)
    return series


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_arguments(parser, '/dev/shm/tessera_series')
    parser.add_argument('--only')
    parser.add_argument('--turns', type=int, default=5)
    parser.add_argument('--gpu')
    parser.add_argument('--threads', type=int, default=len(os.sched_getaffinity(0)))
    o = parser.parse_args()
    s = begin(o)
    chosen = o.only.split(',') if o.only else []
    names = [name for name in s.commands if (any(map(name.startswith, chosen)) if chosen else ' auto' not in name)]
    megabytes = sum(os.path.getsize(os.path.join(s.series, name)) for name in os.listdir(s.series)) / 1e6
    read_s = statistics.median(read_all(s.series, o.threads) for _ in range(o.turns))
    for name in names:
        summary = s.run(name)
        s.check(name)
        if o.kind == 'files' and name.startswith('compress'):
            megabytes = summary['pixel_bytes'] / 1e6
    print(machine.model())
    print('%d %s files of %.0f kB, %.1f MB; -%d %s; %d threads; work folder %s; %d turns' % (
        o.count, o.kind, 1e3 * megabytes / o.count, megabytes, o.effort, o.options, o.threads, o.work, o.turns))
    print('plain reading: %.0f MB/s' % (megabytes / read_s))
    turns = [{name: s.run(name) for name in names} for _ in range(o.turns)]
    rates = {name: [megabytes / turn[name]['wall_s'] for turn in turns] for name in names}
    for name in names:
        report(name, rates, turns, megabytes, megabytes / read_s, o.count)
    shutil.rmtree(o.work)


if __name__ == '__main__':
    main()
