#!/usr/bin/env python3
"""The gain of each vector form of kernels/: the frame coder with the form and without it, by turns.

usage: forms.py FRAMES [--work build-forms] [--only WORD,...] [--groups] [--each 6] [--seconds 1.5] [--jobs N] [--check]

FRAMES    a folder of PGM and PPM files, as research/raw_frames.py writes them; --each of each modality, PPM: RGB
--only    forms whose name or coding has one of the words
--groups  a row for each modality
--check   only whether the sources have the texts that are changed, and each form that says a gain has a row

For each form the script builds libtessera_bench.so once more, from a copy of the sources in which the form is not chosen. What
the product then takes in its place is named: on x86-64 SSE2 stands for plain C where a file of it exists. TESSERA_ISA is the
form's instruction set. Both libraries code the same frames by turns, with one thread, from samples in memory to payload or
back. CPU time; medians of the turns; a gain is the median of the turns' ratios. Ends with an error if a byte differs.

`stage` is the time in the object files of the form's stage: the coding's time by the share of samples of the program counter
(code_samples.c, the linker's map), 5000 a second. A form that is part of a larger text is measured with all of that text.
"""

import argparse
import collections
import ctypes
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLACE_BYTES, SAMPLE_NS = 16, 200000  # code_samples.c
HUFFMAN, CAVLC, RANS = 1, 2, 3       # enum tsr_coder
QP = 24 * 8                          # of codings with loss

# Name: coder, effort, with loss.
CODINGS = {"-1": (HUFFMAN, 1, False), "-2": (HUFFMAN, 2, False), "-5": (HUFFMAN, 5, False), "-9": (RANS, 9, False),
           "CAVLC -1": (CAVLC, 1, True), "Huffman -1": (HUFFMAN, 1, True), "Huffman -5": (HUFFMAN, 5, True), "rANS -5": (RANS, 5, True)}

AVX2_DISPATCH, AVX512_DISPATCH = "    if (isa >= TSR_ISA_AVX2) return ", "    if (isa >= TSR_ISA_AVX512) return "
EIGHT, BY_TURNS = "#if defined(TSR_EIGHT_BLOCKS)\n", "#if defined(TSR_SLICES_BY_TURNS)\n"
BLOCKS, LAPPED, COEFFICIENTS = "kernels/blocks/blocks_form.h", "kernels/blocks/lapped_form.h", "kernels/slices/coefficients_form.h"
CHOICE = "kernels/blocks/choice_form.h"


def without(path, *lines):
    """Changes that take these lines out."""
    return [(path, line + "\n", "") for line in lines]


def plain_if(path, guard, *texts):
    """Changes that take the plain text of `#if guard` in front of these texts."""
    return [(path, guard + text, "#if 0\n" + text) for text in texts]


def plain_entries(condition):
    """The plain slice_entries beside that of AVX2, which is called under the condition alone."""
    slices = "static size_t slice_entries(const int32_t *coefficients, struct tsr_block_grid grid, struct tsr_slice slice,\n" \
             "                            struct tsr_coefficient_coding coding, uint32_t *out)\n{\n"
    return [(COEFFICIENTS, slices + "    return (coding", slices.replace("slice_entries", "vector_entries") + "    return (coding"),
            (COEFFICIENTS, "#else\nstatic struct tsr_magnitudes *seen_at", "#endif\n#if 1\nstatic struct tsr_magnitudes *seen_at"),
            (COEFFICIENTS, slices + "    struct slice_rows rows;",
             slices + BY_TURNS + f"    if ({condition}) return vector_entries(coefficients, grid, slice, coding, out);\n#endif\n    struct slice_rows rows;")]


def plain_slices(pairs):
    """The plain decoders of slices beside those of AVX2, for pairs or for rANS."""
    calls = "    if (coding.pairs) return decode_pair_slices(payload + at, size - at, lengths, grid, tables, coefficients);\n" \
            "    return decode_rans_slices(payload + at, size - at, lengths, grid, tables, coefficients);\n"
    kept = calls.replace("    return", "    if (!coding.pairs) return") if pairs else calls
    kept = kept.split("\n")[1 if pairs else 0]
    return plain_entries("true") + [
        (COEFFICIENTS, "#else\nstatic bool decode_rans_slice(", "#endif\n#if 1\nstatic bool decode_rans_slice("),
        (COEFFICIENTS, BY_TURNS + calls + "#else\n", BY_TURNS + kept + "\n#endif\n#if 1\n")]


# Name, instruction set, what takes its place, object files of the stage, changes of the sources, codings as "side coding".
FORMS = (
    ("linear_sse2.c", "plain", "plain C", "linear_", plain_if("kernels/training/linear_cpu.c", "#if defined(__SSE2__)\n", "    return"),
     "encode -5"),
    ("linear_avx2.c", "avx2", "SSE2", "linear_", without("kernels/training/linear_cpu.c", AVX2_DISPATCH + "&tsr_linear_avx2;"),
     "encode -5"),
    ("linear_avx512.c", "avx512", "AVX2", "linear_", without("kernels/training/linear_cpu.c", AVX512_DISPATCH + "&tsr_linear_avx512;"),
     "encode -5"),
    ("residual_rows_avx2.c", "avx2", "plain C", "residual_rows_",
     without("kernels/residuals/residual_rows_cpu.c", AVX2_DISPATCH + "&tsr_residual_forms_avx2;"), "encode -1,encode -5"),
    ("symbol_rows_avx2.c", "avx2", "plain C", "symbol_rows_",
     without("kernels/residuals/symbol_rows_cpu.c", AVX2_DISPATCH + "&tsr_symbol_rows_avx2;"), "encode -2,encode -5"),
    ("merge_costs_avx2.c: AVX2", "avx2", "plain C", "merge_c",
     without("kernels/tables/merge_cells_cpu.c", "    if (isa >= TSR_ISA_AVX2) work->cost_counts = tsr_cost_counts_avx2;"), "encode -2,encode -5"),
    ("merge_costs_avx2.c: AVX-512", "avx512", "AVX2", "merge_c",
     without("kernels/tables/merge_cells_cpu.c", "    if (isa >= TSR_ISA_AVX512) work->cost_counts = tsr_cost_counts_avx512;",
             "    if (isa >= TSR_ISA_AVX512) return; /* its form knows none */"), "encode -2,encode -5"),
    ("code_lanes_avx2.c", "avx2", "plain C", "code_lanes_",
     without("kernels/lanes/code_lanes_cpu.c", "    if (isa == TSR_ISA_AVX2) return &tsr_row_coder_avx2;"), "encode -1,encode -5"),
    ("code_lanes_avx512.c", "avx512", "AVX2", "code_lanes_",
     [("kernels/lanes/code_lanes_cpu.c", "return &tsr_row_coder_avx512", "return &tsr_row_coder_avx2")], "encode -1,encode -5"),
    ("decode_lanes_sse2.c", "plain", "plain C", "decode_lanes_",
     plain_if("kernels/lanes/decode_lanes_cpu.c", "#if defined(__SSE2__)\n", "    return tsr_decode_rows"), "decode -1,decode -5,decode -9"),
    ("decode_lanes_avx2.c", "avx2", "SSE2", "decode_lanes_",
     without("kernels/lanes/decode_lanes_cpu.c", "    if (isa >= TSR_ISA_AVX2) return tsr_decode_rows_avx2;"), "decode -1,decode -5,decode -9"),
    ("decode_lanes_avx512.c", "avx512", "AVX2", "decode_lanes_",
     [("kernels/lanes/decode_lanes_cpu.c", "return tsr_decode_rows_avx512", "return tsr_decode_rows_avx2")],
     "decode -1,decode -5,decode -9"),
    ("blocks_avx2.c", "avx2", "plain C", "blocks_(cpu|avx2)", without("kernels/blocks/blocks_cpu.c", AVX2_DISPATCH + "&tsr_block_form_avx2;"),
     "encode CAVLC -1,decode CAVLC -1,encode Huffman -1,decode Huffman -1"),
    ("eight_avx2.h", "avx2", "the text for AVX2", "blocks_(cpu|avx2)", plain_if(BLOCKS, EIGHT, "    size_t done"), "decode CAVLC -1"),
    ("cavlc_read_avx2.h", "avx2", "the text for AVX2", "blocks_(cpu|avx2)", plain_if(BLOCKS, EIGHT, "            total = cavlc_get_block"),
     "decode CAVLC -1"),
    ("lapped_avx2.c", "avx2", "plain C", "lapped_(cpu|avx2)", without("kernels/blocks/lapped_cpu.c", AVX2_DISPATCH + "&tsr_lapped_form_avx2;"),
     "encode Huffman -5,decode Huffman -5"),
    ("lapped_eight_avx2.h", "avx2", "the text for AVX2", "lapped_(cpu|avx2)",
     plain_if(LAPPED, EIGHT, "    if (count >=", "    if (settle_eights", "    if (!sink.values) done ="), "encode Huffman -5,decode Huffman -5"),
    ("rough_avx2.h", "avx2", "the text for AVX2", "lapped_(cpu|avx2)", plain_if(CHOICE, EIGHT, '#include "rough_avx2.h"', "    if (blocks->count"),
     "encode Huffman -5"),
    ("choose_avx2.h", "avx2", "the text for AVX2", "lapped_(cpu|avx2)",
     without("kernels/blocks/lapped_avx2.c", '#define TSR_CHOOSE_TILE "choose_avx2.h"'), "encode Huffman -5"),
    ("coefficients_avx2.c", "avx2", "plain C", "coefficients_(cpu|avx2)",
     without("kernels/slices/coefficients_cpu.c", AVX2_DISPATCH + "&tsr_coefficient_form_avx2;"),
     "encode Huffman -5,decode Huffman -5,encode rANS -5,decode rANS -5"),
    ("pair_entries_avx2.h", "avx2", "the text for AVX2", "coefficients_(cpu|avx2)", plain_entries("!coding.pairs"), "encode Huffman -5"),
    ("pair_read_avx2.h", "avx2", "the text for AVX2", "coefficients_(cpu|avx2)", plain_slices(True), "decode Huffman -5"),
    ("rans_entries_avx2.h, rans_put_avx2.h", "avx2", "the text for AVX2", "coefficients_(cpu|avx2)",
     plain_entries("coding.pairs") + plain_if(COEFFICIENTS, BY_TURNS, "    uint32_t *of", "    if (!coding.pairs) memset", '#include "rans_put', "    coder->put"),
     "encode rANS -5"),
    ("rans_read_avx2.h", "avx2", "the text for AVX2", "coefficients_(cpu|avx2)", plain_slices(False), "decode rANS -5"),
    ("difference_avx2.c", "avx2", "plain C", "difference_",
     [("kernels/measure/difference_cpu.c", "isa >= TSR_ISA_AVX2 ? &tsr_difference_avx2 : NULL", "NULL")], "difference"),
    ("difference_avx512.c", "avx512", "AVX2", "difference_",
     [("kernels/measure/difference_cpu.c", "? &tsr_difference_avx512", "? &tsr_difference_avx2")], "difference"),
    ("drawn_avx2.c", "avx2", "plain C", "drawn_(cpu|avx2)", without("kernels/drawn/drawn_cpu.c", AVX2_DISPATCH + "&tsr_drawn_avx2;"),
     "encode -5,decode -5"),
    ("ssim_avx2.c", "avx2", "plain C", "ssim_", without("kernels/measure/ssim_cpu.c", AVX2_DISPATCH + "tsr_ssim_form_avx2;"), "ssim"),
)


def change(tree, changes):
    """Makes the changes; returns the texts from before, by path."""
    before = {}
    for name, old, new in changes:
        path = tree / name
        text = path.read_text()
        if text.count(old) != 1:
            raise SystemExit(f"{name} has this text {text.count(old)} times, not once:\n{old}")
        before.setdefault(path, text)
        path.write_text(text.replace(old, new))
    return before


def restore(before):
    for path, text in before.items():
        path.write_text(text)


def copy_changed(source, copy):
    """A file that is as it was keeps its time, so that only what changed is built again."""
    source, copy = pathlib.Path(source), pathlib.Path(copy)
    if not copy.exists() or source.read_bytes() != copy.read_bytes():
        shutil.copy(source, copy)


class Builder:
    """Libraries in the folder work: with all forms, and without each one."""

    def __init__(self, work, jobs):
        self.work, self.tree, self.build, self.jobs = work, work / "tree", work / "build", jobs
        for folder in ("app", "entropy", "io", "kernels", "testdata", "tests", "transform"):
            shutil.copytree(ROOT / folder, self.tree / folder, dirs_exist_ok=True, copy_function=copy_changed,
                            ignore=shutil.ignore_patterns("__pycache__"))
        for path in ROOT.iterdir():
            if path.is_file():
                copy_changed(path, self.tree / path.name)
        configure = ["cmake", "-S", self.tree, "-B", self.build, "-DCMAKE_BUILD_TYPE=Release", "-DTSR_CUDA=off", "-DBUILD_TESTING=OFF",
                     f"-DCMAKE_SHARED_LINKER_FLAGS=-Wl,-Map={self.build}/map"]
        subprocess.run(configure + (["-G", "Ninja"] if shutil.which("ninja") else []), check=True, stdout=subprocess.DEVNULL)

    def library(self, name, changes=()):
        path, before = self.work / (name + ".so"), change(self.tree, changes)
        try:
            done = subprocess.run(["cmake", "--build", self.build, "--target", "bench_library", "-j", str(self.jobs)],
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        finally:
            restore(before)
        if done.returncode:
            raise SystemExit(f"without {name}:\n{done.stdout[-4000:]}")
        shutil.copy(self.build / "bin" / "libtessera_bench.so", path)
        return path, (self.build / "map").read_text(errors="replace")


def objects(text):
    """Of a linker's map: begin, bytes and object file of each piece of code."""
    found = re.findall(r"^ \.text\S*\s+0x([0-9a-f]+)\s+0x([0-9a-f]+) (\S+)$", text, re.MULTILINE)
    return [(int(begin, 16), int(size, 16), re.sub(r".*[/(]|\)", "", name)) for begin, size, name in found]


class Library:
    def __init__(self, path, linker_map):
        self.c = ctypes.CDLL(str(path))
        self.c.bench_engine.restype = ctypes.c_void_p
        self.c.bench_bound.restype = ctypes.c_size_t
        self.c.bench_encode.restype = self.c.bench_encode_lossy.restype = self.c.bench_decode.restype = ctypes.c_double
        self.c.bench_difference.restype = ctypes.c_double
        self.engine = ctypes.c_void_p(self.c.bench_engine(1))
        self.objects = objects(linker_map)
        self.counts = (ctypes.c_uint32 * (max(begin + size for begin, size, _ in self.objects) // PLACE_BYTES + 1))()

    def share(self, stage):
        """Of all samples that lie in the library, those in the stage's object files."""
        of_object = collections.Counter()
        for begin, size, name in self.objects:
            of_object[name] += sum(self.counts[begin // PLACE_BYTES : (begin + size) // PLACE_BYTES])
        found = sum(count for name, count in of_object.items() if re.match(stage, name))
        return found / max(1, sum(of_object.values()))

    def sampled(self, call, *arguments):
        if self.c.bench_samples_begin(self.counts, ctypes.c_size_t(len(self.counts)), ctypes.c_long(SAMPLE_NS)) != 0:
            raise SystemExit("no samples on this machine")
        seconds = call(*arguments)
        self.c.bench_samples_end()
        if seconds < 0:
            raise SystemExit("a frame is not coded")
        return seconds


class Frame:
    def __init__(self, path):
        data = path.read_bytes()
        self.columns, self.rows, top = map(int, data.split(None, 4)[1:4])
        self.components, self.bits = 3 if data[:2] == b"P6" else 1, top.bit_length()
        self.samples, bytes_each = self.columns * self.rows * self.components, 2 if top > 255 else 1
        raster = bytearray(data[len(data) - bytes_each * self.samples :])
        if bytes_each == 2:
            raster[0::2], raster[1::2] = raster[1::2], raster[0::2]
        self.raster = (ctypes.c_uint8 * len(raster)).from_buffer(raster)
        self.back = (ctypes.c_uint8 * len(raster))()
        self.group = "RGB" if self.components == 3 else path.name.partition("_")[0]
        self.image = [ctypes.c_uint32(v) for v in (self.columns, self.rows, self.components, self.bits)]

    def encode(self, library, coding):
        """Seconds and payload."""
        coder, effort, lossy = coding
        size = ctypes.c_size_t(library.c.bench_bound(*self.image))
        payload = (ctypes.c_uint8 * size.value)()
        how = [ctypes.c_uint32(coder), ctypes.c_uint32(effort)]
        call, more = (library.c.bench_encode_lossy, how + [ctypes.c_int32(QP)]) if lossy else (library.c.bench_encode, [ctypes.c_uint32(0)] + how)
        seconds = library.sampled(call, library.engine, *self.image, *more, self.raster, payload, ctypes.byref(size))
        return seconds, bytes(payload[: size.value])

    def decode(self, library, payload):
        seconds = library.sampled(library.c.bench_decode, library.engine, *self.image, payload, ctypes.c_size_t(len(payload)), self.back)
        return seconds, bytes(self.back)

    def measure(self, library, value_range):
        """Seconds of comparing the raster with itself turned by a few samples."""
        turned = bytes(self.raster)[64:] + bytes(self.raster)[:64]
        numbers = [ctypes.c_uint32(v) for v in (0, 0, value_range, 1)]
        return library.sampled(library.c.bench_difference, *self.image, *numbers, self.raster, turned), None


def read_frames(folder, each):
    """The largest frames of each group, of at least 64 rows and columns."""
    frames, taken = [], collections.Counter()
    for path in sorted(pathlib.Path(folder).glob("*.p[gp]m"), key=lambda p: (-p.stat().st_size, p.name)):
        frame = Frame(path)
        taken[frame.group] += 1
        if taken[frame.group] <= each and min(frame.columns, frame.rows) >= 64:
            frames.append(frame)
    return frames


def turn(libraries, frames, side, coding, payloads, order):
    """Seconds of all frames by library, which take turns from frame to frame."""
    sums = [0.0, 0.0]
    for number, frame in enumerate(frames):
        results = [None, None]
        for which in order if number % 2 else order[::-1]:
            library = libraries[which]
            if side == "encode":
                seconds, results[which] = frame.encode(library, coding)
            elif side == "decode":
                seconds, results[which] = frame.decode(library, payloads[number])
            else:
                seconds, results[which] = frame.measure(library, (1 << frame.bits) - 1 if side == "ssim" else 0)
            sums[which] += seconds
        if results[0] != results[1]:
            raise SystemExit("a byte differs")
    return sums


def compare(libraries, frames, words, stage, seconds):
    """A row's cells: of the whole coding and of the stage, ns a sample without and with the form, and the gain."""
    side, _, name = words.partition(" ")
    coding, samples = CODINGS.get(name), sum(frame.samples for frame in frames)
    payloads = [frame.encode(libraries[1], coding)[1] for frame in frames] if side == "decode" else None
    turn(libraries, frames, side, coding, payloads, (0, 1))
    for library in libraries:
        ctypes.memset(library.counts, 0, ctypes.sizeof(library.counts))
    times = []
    while len(times) < 5 or sum(map(sum, times)) < 2 * seconds:
        times.append(turn(libraries, frames, side, coding, payloads, (0, 1) if len(times) % 2 else (1, 0)))
    whole = [statistics.median(t[which] for t in times) / samples * 1e9 for which in (0, 1)]
    gain = statistics.median(without / with_it for without, with_it in times)
    in_stage = [library.share(stage) * w for library, w in zip(libraries, whole)]
    return "%.2f → %.2f | %.2f" % (*in_stage, in_stage[0] / max(1e-9, in_stage[1])), "%.2f → %.2f | %.2f" % (*whole, gain)


def processor():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        fields = dict(line.split("\t: ", 1) if "\t: " in line else (line.split(":")[0].strip(), line.partition(":")[2].strip())
                      for line in file.read().split("\n\n")[0].splitlines())
    fields = {key.strip(): value for key, value in fields.items()}
    flags = fields["flags"].split()
    isas = ["plain"] + ["avx2"] * ("avx2" in flags) + ["avx512"] * ("avx512_vbmi2" in flags)
    return f"{fields['model name']}, family {fields['cpu family']}, model {fields['model']}", isas


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("frames", nargs="?")
    parser.add_argument("--work", default="build-forms")
    parser.add_argument("--only", default="")
    parser.add_argument("--groups", action="store_true")
    parser.add_argument("--each", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=1.5, help="of each library, at least")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    if options.check:
        for name, _, _, _, changes, _ in FORMS:
            for path, old, _ in changes:
                if (ROOT / path).read_text().count(old) != 1:
                    raise SystemExit(f"{name}: {path} has this text not once:\n{old}")
        listed = " ".join(name for name, *_ in FORMS)
        for path in sorted((ROOT / "kernels").rglob("*")):
            if re.search(r"_(sse2|avx2|avx512)\.[ch]$", path.name) and "Gain: " in path.read_text().partition("*/")[0] and path.name not in listed:
                raise SystemExit(f"{path} says a gain that no row measures")
        print(f"{len(FORMS)} forms are chosen where the list says")
        return 0
    machine, isas = processor()
    words = options.only.split(",")
    rows = [(name, isa, place, stage, changes, [c for c in codings.split(",") if any(w in f"{name} {c}" for w in words)])
            for name, isa, place, stage, changes, codings in FORMS if isa in isas]
    rows = [row for row in rows if row[5]]
    frames = read_frames(options.frames, options.each)
    groups = {"all": frames}
    if options.groups:
        groups = {g: [f for f in frames if f.group == g] for g in sorted({f.group for f in frames})}
    builder = Builder(pathlib.Path(options.work).resolve(), options.jobs)
    whole = builder.library("whole")
    for isa in isas:
        shutil.copy(whole[0], builder.work / f"whole_{isa}.so")
    print(f"{machine}, {len(frames)} frames, {sum(f.samples for f in frames)} samples\n")
    print("| form | in place of | coding |" + " frames |" * options.groups + " stage, ns a sample | gain | whole, ns a sample | gain |")
    print("|---|---|---|" + "---|" * options.groups + "---|---|---|---|")
    for number, (name, isa, place, stage, changes, codings) in enumerate(rows):
        os.environ["TESSERA_ISA"] = isa  # which a library reads once
        libraries = [Library(*builder.library(f"without_{number}", changes)), Library(builder.work / f"whole_{isa}.so", whole[1])]
        for coding in codings:
            for group, chosen in groups.items():
                cells = compare(libraries, chosen, coding, stage, options.seconds)
                print(f"| {name} | {place} | {coding} |" + f" {len(chosen)} {group} |" * options.groups + f" {cells[0]} | {cells[1]} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
