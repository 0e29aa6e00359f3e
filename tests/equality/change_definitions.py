#!/usr/bin/env python3
"""Changes each definition that affects a byte, one at a time. Every form of its stage must follow the change.

usage: change_definitions.py [WORK] [--list FILE] [--only TEXT] [--some N] [--jobs N] [--check]

WORK (build-definitions) is a folder for this script only. It gets a copy of the tree and two builds of the program: with the
CPU forms, and with the CUDA kernels as C++ (TSR_CUDA=emulated). definitions.txt beside this script is the list. It has a
change a line, with tabs between the file, a text that stands there once, the text that replaces it, what it is, and the test
that may fail, if there is one.

For each change the program is built again. For each form (TESSERA_ISA=plain, avx2 and avx512 if this processor has them, and
the emulated GPU) two results are compared: the bytes that it writes for a set of small images and codings, and the samples
that it decodes from the files of the unchanged program.

  followed    the bytes or the decoded samples changed, in all forms in the same way
  refused     the change does not compile: a static assertion stops it
  tested      the forms differ, and the test that the list names fails: an equality test compares a second form with its
              definition
  DIFFER      the forms differ, and no named test fails: something is defined twice
  DEAD        nothing changed anywhere

--check only checks that each text stands once in its file.

Exit status: 0 if nothing DIFFERs and nothing is DEAD, else 1."""
import argparse, hashlib, os, random, shutil, subprocess, sys, time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
CODINGS = [
    '-1 --path predict', '-2 --path predict', '-3 --path predict --coder rans', '-5 --path predict', '-8 --path predict',
    '-5 --path predict --coder cavlc', '-5 --path predict --max-error 2', '-5 --path transform', '-2 --path transform --coder rans',
    '-5 --path transform --coder cavlc', '-1 --qp 12', '-5 --qp 24', '-7 --qp 20', '-9 --qp 20 --coder cavlc', '-6 --qp -40',
]


def images(folder):
    """Images of a few thousand samples that show differences between codings: edges, flat runs, noise, colours, depths."""
    r = random.Random(5)
    def smooth(x, y, top):
        return int(top * (0.5 + 0.22 * ((x * 7 // 5 + y) % 41) / 41 + 0.25 * ((x // 17 + y // 13) % 2)))
    def write(name, columns, rows, components, top, sample):
        size = 1 if top < 256 else 2
        out = bytearray(b'P%d %d %d %d\n' % (5 if components == 1 else 6, columns, rows, top))
        for y in range(rows):
            for x in range(columns):
                for c in range(components):
                    out += min(top, max(0, sample(x, y, c))).to_bytes(size, 'big')
        with open(os.path.join(folder, name), 'wb') as file:
            file.write(out)
    write('scan.pgm', 211, 190, 1, 4095, lambda x, y, c: smooth(x, y, 2600) + r.randrange(-9, 10) * (x > 60))
    write('wide.pgm', 96, 61, 1, 65535, lambda x, y, c: smooth(x, y, 60000) + r.randrange(-300, 301))
    write('screen.pgm', 150, 120, 1, 255, lambda x, y, c: 255 if (x // 30 + y // 24) % 3 else 40 + 60 * (x % 30 == 9))
    write('photo.ppm', 83, 70, 3, 255, lambda x, y, c: smooth(x + 3 * c, y, 200) // (1 + c % 2) + r.randrange(-4, 5))
    write('flat.ppm', 40, 33, 3, 255, lambda x, y, c: (90, 30, 200)[c] + 20 * ((x // 8 + y // 8) % 2))
    write('spots.pgm', 128, 96, 1, 4095, lambda x, y, c: 1000 + r.randrange(100) + 2 * x if x // 16 % 3 == 0 else
          500 + (900 if r.randrange(32) == 0 else 0) + (x // 16 % 3 == 2) * (y % 16 > 9) * r.randrange(12))
    write('thin.pgm', 5, 300, 1, 255, lambda x, y, c: smooth(x, y, 220) + r.randrange(-30, 31))


def read_list(path):
    """The list's records: file, old text, new text, what it is and, if named, the test that may fail."""
    records = []
    for number, line in enumerate(open(path, encoding='utf-8'), 1):
        parts = line.rstrip('\n').split('\t')
        if not line.strip() or line.startswith('#'):
            continue
        if len(parts) not in (4, 5):
            sys.exit('%s:%d: %d fields, not 4 or 5' % (path, number, len(parts)))
        records.append(dict(zip(('file', 'old', 'new', 'what', 'test'), parts)))
    return records


def missing(record, root):
    with open(os.path.join(root, record['file']), encoding='utf-8') as file:
        count = file.read().count(record['old'])
    return None if count == 1 else '%s: %s has the text %d times' % (record['what'], record['file'], count)


class Program:
    def __init__(self, work, name, cuda):
        self.folder, self.name, self.cuda = os.path.join(work, name), name, cuda
        self.tree = os.path.join(work, 'tree')

    def configure(self):
        subprocess.run(['cmake', '-S', self.tree, '-B', self.folder, '-G', 'Ninja', '-DCMAKE_BUILD_TYPE=Release', '-DCMAKE_C_FLAGS_RELEASE=-O1', '-DCMAKE_CXX_FLAGS_RELEASE=-O1',
                        '-DTSR_BUILD_BENCH=OFF', '-DTSR_CUDA=' + self.cuda], check=True, stdout=subprocess.DEVNULL)

    def build(self, target, jobs):
        return subprocess.run(['ninja', '-C', self.folder, '-j', str(jobs), target], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)

    def path(self, name='tessera'):
        return os.path.join(self.folder, 'bin', name)


def digest(path):
    if not os.path.exists(path):
        return 'nothing'
    with open(path, 'rb') as file:
        return hashlib.sha256(file.read()).hexdigest()


def outcome(program, engine, isa, data, coded, scratch):
    """Digests, by coding and image, of a form's files and of what it decodes from the files in the folder coded."""
    environment = dict(os.environ, TESSERA_ISA=isa)
    shutil.rmtree(scratch, ignore_errors=True)
    written, back = os.path.join(scratch, 'written'), os.path.join(scratch, 'back')
    os.makedirs(back)
    names = sorted(os.listdir(data))
    def run(words):
        return subprocess.run([program.path()] + words, env=environment, stderr=subprocess.DEVNULL, timeout=300).returncode
    for number, coding in enumerate(CODINGS):
        folder = os.path.join(written, str(number))
        os.makedirs(folder)
        run(['compress', '-q', '--verify', 'none', '--engine', engine] + coding.split() + ['-o', folder] + [os.path.join(data, name) for name in names])
        os.makedirs(os.path.join(back, str(number)))
        source = os.path.join(coded or written, str(number))
        run(['decompress', '-q', '--engine', engine, '-o', os.path.join(back, str(number))] +
            [os.path.join(source, name) for name in sorted(os.listdir(source))])
    return [digest(os.path.join(folder, str(number), name + ending)) for number in range(len(CODINGS)) for name in names
            for folder, ending in ((written, '.tsr'), (back, ''))]


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split('\n')[2][7:])
    parser.add_argument('work', nargs='?', default='build-definitions')
    parser.add_argument('--list', default=os.path.join(HERE, 'definitions.txt'))
    parser.add_argument('--only')
    parser.add_argument('--some', type=int)
    parser.add_argument('--jobs', type=int, default=os.cpu_count())
    parser.add_argument('--check', action='store_true')
    options = parser.parse_args()
    records = [r for r in read_list(options.list) if not options.only or options.only in r['what'] + r['file']]
    wrong = list(filter(None, (missing(record, ROOT) for record in records)))
    if wrong or options.check:
        print('\n'.join(wrong) or '%d definitions are where the list says' % len(records))
        sys.exit(len(wrong) > 0)
    work = os.path.abspath(options.work)
    tree = os.path.join(work, 'tree')
    os.makedirs(tree, exist_ok=True)
    files = subprocess.run(['git', 'ls-files', '-z'], cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout.split(b'\0')
    for name in filter(None, files):
        source, copy = os.path.join(ROOT, os.fsdecode(name)), os.path.join(tree, os.fsdecode(name))
        os.makedirs(os.path.dirname(copy), exist_ok=True)
        if os.path.isfile(source) and digest(source) != digest(copy):
            shutil.copy(source, copy)
    if options.some:
        records = random.sample(records, min(options.some, len(records)))
    programs = [Program(work, 'cpu', 'off'), Program(work, 'emulated', 'emulated')]
    for program in programs:
        program.configure()
        built = program.build('tessera', options.jobs)
        if built.returncode:
            sys.exit(built.stdout[-4000:])
    flags = open('/proc/cpuinfo').read().split('flags')[1].split('\n')[0].split()
    isas = ['plain'] + ['avx2'] * ('avx2' in flags) + ['avx512'] * ('avx512vbmi' in flags)
    forms = [(isa, programs[0], 'cpu') for isa in isas] + [('cuda', programs[1], 'cuda')]
    data, coded, form = (os.path.join(work, name) for name in ('data', 'coded', 'form'))
    shutil.rmtree(data, ignore_errors=True)
    os.makedirs(data)
    images(data)
    for number, (isa, program, engine) in enumerate(forms):
        found = outcome(program, engine, isa, data, None, coded if number == 0 else form)
        if number == 0:
            base = found
        elif found != base:
            sys.exit('without a change, %s and plain differ' % isa)
    if 'nothing' in base:
        sys.exit('a coding does not work')
    print('%d definitions; %d images x %d codings; forms: %s' % (len(records), len(os.listdir(data)), len(CODINGS), ' '.join(f[0] for f in forms)))
    bad = 0
    for record in records:
        begin = time.time()
        path = os.path.join(tree, record['file'])
        text = open(path).read()
        with open(path, 'w') as file:
            file.write(text.replace(record['old'], record['new']))
        verdict = judge(record, programs, forms, data, os.path.join(coded, 'written'), base, form, options.jobs)
        with open(path, 'w') as file:
            file.write(text)
        bad += verdict.split()[0] in ('DIFFER', 'DEAD')
        print('%-9s %s (%s), %.0f s' % (verdict, record['what'], record['file'], time.time() - begin), flush=True)
    for program in programs:
        program.build('tessera', options.jobs)
    print('%d of %d are not as they should be' % (bad, len(records)))
    sys.exit(bad > 0)


def fails(test, programs, jobs):
    program = programs[1 if test.startswith('test_cuda') else 0]
    environment = dict(os.environ, TSR_TEST_SMALL='5')
    return program.build(test, jobs).returncode == 0 and subprocess.run(
        [program.path(test)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment).returncode != 0


def judge(record, programs, forms, data, coded, base, scratch, jobs):
    for program in programs:
        if program.build('tessera', jobs).returncode:
            return 'refused'
    outcomes = [outcome(program, engine, isa, data, coded, scratch) for isa, program, engine in forms]
    if all(found == outcomes[0] for found in outcomes):
        return 'followed' if outcomes[0] != base else 'DEAD'
    others = [forms[i][0] for i, found in enumerate(outcomes) if found != outcomes[0]]
    if 'test' in record and all(fails(test, programs, jobs) for test in record['test'].split()):
        return 'tested'
    return 'DIFFER %s' % ','.join(others)


if __name__ == '__main__':
    main()
