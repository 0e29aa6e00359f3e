#!/usr/bin/env python3
"""The whole program on a series of slices: rates, and where the time goes.

    python3 tests/bench/program.py --bin build/bin --frames FOLDER [--count 2000] [--kind dicom|pgm] [--level 5]
                                   [--work /dev/shm/series] [--only NAME,...] [--gpu N,...] [--threads N]

FOLDER has 16-bit PGM files of one size, which are repeated, each with other lowest bits in a part of its samples, until
there are so many. They are read once before anything is timed, so they come from the page cache. Rates are in MB of
input files a second (of restored ones, for test and decompress), and as ratios to the CPU engine's with the same check
and to plain reading; `+start` has the waking of the GPU in it, which the others leave out. Shares: seconds of the
program's threads in a stage, of all its threads' seconds at work on files, waiting for a GPU or a processor left out;
kernels and transfers: seconds on the GPUs' streams, of the seconds that passed, so batches that overlap add up to more.
Outputs of all engines must be the same, and what comes back must be the input.
"""
import argparse
import filecmp
import json
import os
import resource
import shutil
import struct
import subprocess
import sys
import threading
import time


def read_pgm(path):
    """Columns, rows, largest value and samples, big-endian, of a P5 file without comments."""
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
    """A CT slice with what a reader needs; samples little-endian."""
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


def make_series(frames, count, kind, folder):
    import numpy
    sources = [read_pgm(os.path.join(frames, name)) for name in sorted(os.listdir(frames)) if name.endswith('.pgm')]
    sources = [s for s in sources if s[2] > 255 and s[:2] == sources[0][:2]]
    random = numpy.random.default_rng(1)
    os.makedirs(folder)
    for i in range(count):
        columns, rows, most, data = sources[i % len(sources)]
        samples = numpy.frombuffer(data, '>u2').copy()
        if i >= len(sources):  # the lowest bit of one sample in 16
            at = random.integers(0, samples.size, samples.size // 16)
            samples[at] ^= 1
        name = os.path.join(folder, 'slice_%05d.%s' % (i, 'dcm' if kind == 'dicom' else 'pgm'))
        with open(name, 'wb') as file:
            if kind == 'dicom':
                file.write(dicom(columns, rows, most.bit_length(), i, samples.astype('<u2').tobytes()))
            else:
                file.write(b'P5\n%d %d\n%d\n' % (columns, rows, most) + samples.tobytes())


def read_all(folder, threads):
    """Seconds for reading all files of a folder."""
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
    """Of the threads' seconds at work: reading, copying, verifying, writing, and all else, which is coding on the CPU,
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


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--bin', default='build/bin')
    parser.add_argument('--frames', required=True)
    parser.add_argument('--count', type=int, default=2000)
    parser.add_argument('--kind', default='dicom')
    parser.add_argument('--level', type=int, default=5)
    parser.add_argument('--work', default='/dev/shm/tessera_series')
    parser.add_argument('--only')
    parser.add_argument('--gpu')
    parser.add_argument('--threads', type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument('--repeat', type=int, default=3)
    o = parser.parse_args()
    tessera = os.path.join(o.bin, 'tessera')
    series, packed, back = (os.path.join(o.work, name) for name in ('series', 'packed', 'back'))
    shutil.rmtree(o.work, ignore_errors=True)
    os.makedirs(o.work)
    make_series(o.frames, o.count, o.kind, series)
    read_all(series, o.threads)
    read_s = min(read_all(series, o.threads) for _ in range(3))
    megabytes = sum(os.path.getsize(os.path.join(series, name)) for name in os.listdir(series)) / 1e6
    print('%d %s files of %.0f kB, %.1f MB; -%d; %d threads; work folder %s' % (
        o.count, o.kind, 1e3 * megabytes / o.count, megabytes, o.level, o.threads, o.work))
    print('plain reading: %.0f MB/s' % (megabytes / read_s))

    common = ['-r', '-q', '--json', '-T', str(o.threads)]
    gpus = ['--gpu', o.gpu] if o.gpu else []
    compress = lambda engine, verify: [tessera, 'compress', *common, '-f', '-%d' % o.level, '--engine', engine, '--verify',
                                       verify, *(gpus if engine == 'cuda' else []), series, '-o', packed]
    restore = lambda verb, engine: [tessera, verb, *common, '--engine', engine, *(gpus if engine == 'cuda' else []),
                                    packed, *(['-f', '-o', back] if verb == 'decompress' else [])]
    runs = {
        'compress cpu, verify cpu': compress('cpu', 'cpu'),
        'compress cuda, verify cuda': compress('cuda', 'cuda'),
        'compress cuda, verify cpu': compress('cuda', 'cpu'),
        'compress cuda, verify none': compress('cuda', 'none'),
        'test cpu': restore('test', 'cpu'),
        'test cuda': restore('test', 'cuda'),
        'decompress cpu': restore('decompress', 'cpu'),
        'decompress cuda': restore('decompress', 'cuda'),
    }
    rates, reference = {}, os.path.join(o.work, 'reference')
    for name, command in runs.items():
        if o.only and not any(name.startswith(wanted) for wanted in o.only.split(',')):
            continue
        best = None
        for _ in range(1 if name == 'compress cpu, verify cpu' else o.repeat):
            if name.startswith('compress'):
                shutil.rmtree(packed, ignore_errors=True)
            if name.startswith('decompress'):
                shutil.rmtree(back, ignore_errors=True)
            now = run(command)
            if best is None or now['wall_s'] < best['wall_s']:
                best = now
        rates[name] = megabytes / best['wall_s']
        ratios = ', %.2f x reading' % (rates[name] * read_s / megabytes)
        for base in 'compress cpu, verify cpu', 'test cpu':
            if base in rates and base != name and (base == 'test cpu') != name.startswith('compress cpu'):
                ratios += ', %.2f x %s' % (rates[name] / rates[base], base)
        print('%-27s %7.0f MB/s (+start %5.0f)%s' % (name, rates[name], megabytes / best['whole_s'], ratios))
        print('    ' + shares(best, not name.startswith('compress')))
        if best.get('fallbacks'):
            print('    %d files by the CPU engine' % best['fallbacks'])
        if name.startswith('compress') and not os.path.isdir(reference):
            shutil.copytree(packed, reference)
        elif name.startswith('compress') and not same_trees(reference, packed):
            sys.exit('%s: other bytes' % name)
        if name.startswith('decompress') and not same_trees(series, back):
            sys.exit('%s: what comes back is not the input' % name)
        sys.stdout.flush()
    if 'test cpu' in rates and 'compress cuda, verify cpu' in rates:
        print('compress cuda, verify cpu: %.2f x test cpu' % (rates['compress cuda, verify cpu'] / rates['test cpu']))
    shutil.rmtree(o.work)


if __name__ == '__main__':
    main()
