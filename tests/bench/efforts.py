#!/usr/bin/env python3
"""Sizes by effort: where a file is larger at a higher one, and in which parts it is.
    efforts.py PROGRAM PATH... [--most 0.3] [--options "--coder rans"] [--all] [--sections]
Files of folders, each compressed at all efforts without loss. The table lists those of which a higher effort takes
more (--all: all files) and which take less than --most bits a sample at one effort at least. --sections: bytes of frame
models, of tiles (labels and words), and of the rest, instead of sizes. The last lines add up all files below --most."""
import argparse, json, os, subprocess, sys, tempfile

EFFORTS = range(1, 10)


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def small_parts(data):
    """FORMAT.md 3.10. The proof's length is not known here: the list of parts is found by what must hold of it."""
    header, at = varint(data, 5)
    for place in range(at + header, min(len(data) - 10, at + header + 90)):
        count, k = varint(data, place)
        types = data[k:k + count]
        if not 1 <= count <= 255 or any(t > 5 and t not in b'FGT' for t in types) or b'F' not in types:
            continue
        k, sizes = k + count, []
        for _ in range(count - 1):
            size, k = varint(data, k)
            sizes.append(size)
        last = len(data) - 8 - k - sum(sizes)
        if last >= 0:
            return list(zip(types, sizes + [last]))
    return []


def sections(data):
    """FORMAT.md 3."""
    at, found = 4, []
    while at < len(data) - 24 and data[at] not in b'IC':
        size, body = varint(data, at + 1)
        found.append((data[at], body + size + 8 - at))
        at = body + size + 8
    return found


def parts_of(path):
    """Bytes of models, of tiles, and of the rest."""
    with open(path, 'rb') as file:
        data = file.read()
    found = small_parts(data) if data[4:5] == b'S' else sections(data)
    models, tiles = (sum(size for kind, size in found if kind in kinds) for kinds in (b'FG', b'T'))
    return models, tiles, len(data) - models - tiles


def sweep(program, paths, options):
    """file -> effort -> (bytes, bits a sample or None, parts)"""
    results = {}
    for effort in EFFORTS:
        with tempfile.TemporaryDirectory() as folder:
            command = [program, 'compress', '-r', '-q', '--json', '--verify', 'none', f'-{effort}', *options, *paths]
            run = subprocess.run([*command, '-o', folder], stdout=subprocess.PIPE, check=False)
            for row in map(json.loads, run.stdout.splitlines()):
                if not row.get('output') or not os.path.exists(row['output']):
                    continue
                found = row['bytes_out'], row['bits_per_sample'], parts_of(row['output'])
                results.setdefault(row['file'], {})[effort] = found
    return {name: row for name, row in results.items() if len(row) == len(EFFORTS)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('program')
    parser.add_argument('paths', nargs='+')
    parser.add_argument('--most', type=float, default=0.3)
    parser.add_argument('--options', default='')
    parser.add_argument('--all', action='store_true')
    parser.add_argument('--sections', action='store_true')
    a = parser.parse_args()
    total, files, larger = {e: [0, 0, 0, 0] for e in EFFORTS}, 0, 0
    print('file', *(f'-{e}' for e in EFFORTS), sep='\t')
    for name, row in sorted(sweep(a.program, a.paths, a.options.split()).items()):
        if min(99 if bits is None else bits for _, bits, _ in row.values()) >= a.most:
            continue
        grows = any(row[e][0] > row[e - 1][0] for e in EFFORTS if e > 1)
        files, larger = files + 1, larger + grows
        for e in EFFORTS:
            total[e] = [old + new for old, new in zip(total[e], (row[e][0], *row[e][2]))]
        if grows or a.all:
            print(name, *('+'.join(map(str, row[e][2])) if a.sections else row[e][0] for e in EFFORTS), sep='\t')
    for k, what in enumerate(('all bytes', 'models', 'tiles', 'rest')):
        print(f'{files} files: {what}', *(total[e][k] for e in EFFORTS), sep='\t')
    print(f'{larger} of {files} files are larger at a higher effort')
    sys.exit(larger > 0)


if __name__ == '__main__':
    main()
