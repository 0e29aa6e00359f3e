#!/usr/bin/env python3
"""Guards the speed of one thread by counts of instructions: speed_guard.py BUILD [--renew] [--only GROUP,...]

Makes files of the synthetic set and of the exporter, in groups: frames by two paths, and each kind of file that is
restored from what was decoded. Counts the instructions of `compress --verify none` and of `test` by valgrind's callgrind with
TESSERA_ISA=avx2, less those of a run on an empty file, and compares the counts with those of speed_guard.json.
A count that is over 1 % higher or lower is told. A count that is over 3 % higher fails (status 1).

speed_guard.json has a baseline for each version of a compiler. Nothing is compared, and the status is 0, where it has none
for this compiler, where the build is no Release for x86-64, where the processor has no AVX2, and without valgrind.
--renew counts all groups and writes the baseline of this build's compiler; --only makes a group or several of them."""
import argparse
import concurrent.futures
import glob
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

from builds import compress, count

BASELINE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "speed_guard.json")
TOLD, FAILS = 1.0, 3.0  # percent
FRAMES = ["dicom/ct/slice_01.dcm", "dicom/mr/brain_01.dcm", "dicom/us/sector_rgb.dcm", "dicom/cr/chest.dcm",
          "pnm/landscape_grey_8bit.pgm", "pnm/landscape_8bit.ppm"]
# Group: options, files of the synthetic set. The exporter makes more groups, of the first three frames.
GROUPS = {
    "frames": ([], FRAMES),
    "frames, -1": (["-1"], FRAMES),
    "frames, -9": (["-9"], FRAMES),
    "frames, path T": (["--qp", "24"], FRAMES),
    "PNG": ([], ["png/landscape_grey.png", "png/screen_palette.png", "png/ct_grey16.png"]),
    "small PNG": ([], ["png/formats/grey8.png", "png/formats/palette4.png", "png/formats/rgba8.png"]),
    "JPEG": ([], ["packed/photo.jpg", "dicom/packed/jpeg_lossy.dcm", "made/progressive.jpg"]),
    "deflate": ([], ["packed/digits.gz", "packed/truncated.nii.gz", "nifti/larger.nii.gz"]),
    "elements": ([], ["dicom/odd/no_pixels.dcm", "dicom/odd/no_pixels_behind.dcm", "made/contours.dcm"]),
}
EXPORTED = {"RLE": "rle", "JPEG lossless": "jpeg-lossless", "JPEG-LS": "jpeg-ls", "JPEG 2000": "j2k"}


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(0)


def compiler_of(build):
    """The compiler's name and version, such as "gcc 12.2.0"; exits where this build cannot be compared"""
    with open(os.path.join(build, "CMakeCache.txt"), encoding="utf-8") as file:
        cache = file.read()
    if not re.search(r"^CMAKE_BUILD_TYPE:\w+=Release$", cache, re.MULTILINE) or "TSR_SANITIZE:BOOL=ON" in cache:
        skip("the speed guard compares Release builds alone")
    with open(glob.glob(os.path.join(build, "CMakeFiles/*/CMakeCCompiler.cmake"))[0], encoding="utf-8") as file:
        said = dict(re.findall(r'^set\((\w+) "([^"]*)"\)', file.read(), re.MULTILINE))
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        if not re.search(r"^flags\s*:.* avx2 ", file.read(), re.MULTILINE):
            skip("the speed guard needs an x86-64 processor with AVX2")
    if not shutil.which("valgrind"):
        skip("valgrind is missing (Debian: valgrind)")
    name = {"GNU": "gcc", "Clang": "clang"}.get(said["CMAKE_C_COMPILER_ID"], said["CMAKE_C_COMPILER_ID"])
    return f"{name} {said['CMAKE_C_COMPILER_VERSION']}"


def element(group, number, vr, value):
    value += b" " * (len(value) % 2)
    head = group.to_bytes(2, "little") + number.to_bytes(2, "little") + vr
    length = b"\0\0" + len(value).to_bytes(4, "little") if vr in (b"SQ", b"OB") else len(value).to_bytes(2, "little")
    return head + length + value


def contours(points):
    """A DICOM file without pixels, as radiotherapy plans have them: items of coordinates"""
    def item(body):
        return b"\xfe\xff\x00\xe0" + len(body).to_bytes(4, "little") + body

    items, state = b"", 1
    for number in range(points // 30):
        values = []
        for _ in range(30):
            state = (state * 1103515245 + 12345) % 2**31
            values.append(b"%d.%02d\\%d.%02d\\-%d.5" % (80 + number % 40, state >> 25, 30 + number % 7, state >> 26 << 1, number))
        items += item(element(0x3006, 0x42, b"CS", b"CLOSED_PLANAR") + element(0x3006, 0x46, b"IS", b"30") +
                      element(0x3006, 0x50, b"DS", b"\\".join(values)))
    syntax = element(2, 0x10, b"UI", b"1.2.840.10008.1.2.1\0")
    head = element(2, 0, b"UL", len(syntax).to_bytes(4, "little")) + syntax
    return bytes(128) + b"DICM" + head + element(8, 0x60, b"CS", b"RTSTRUCT") + element(0x3006, 0x40, b"SQ", items)


def make_inputs(build, work):
    """Groups of inputs as {name: (options, paths)}. A group of which a tool is missing is left out, and said so."""
    program, data = os.path.join(build, "bin/tessera"), os.path.join(work, "set")
    subprocess.run([os.path.join(build, "bin/tessera_testdata"), data], check=True, stdout=subprocess.DEVNULL)
    os.mkdir(os.path.join(data, "made"))
    with open(os.path.join(data, "made/contours.dcm"), "wb") as file:
        file.write(contours(1500))
    groups = {name: (options, [os.path.join(data, path) for path in paths]) for name, (options, paths) in GROUPS.items()}
    if shutil.which("cjpeg"):
        subprocess.run(["cjpeg", "-progressive", "-quality", "85", "-outfile", os.path.join(data, "made/progressive.jpg"),
                        os.path.join(data, "pnm/landscape_8bit.ppm")], check=True)
    else:
        print("skipped: JPEG: cjpeg is missing (Debian: libjpeg-turbo-progs)")
        del groups["JPEG"]
    for group, syntax in EXPORTED.items():
        made = []
        for path in FRAMES[:3]:
            packed, out = os.path.join(work, "one.tsr"), os.path.join(data, "made", f"{syntax}_{os.path.basename(path)}")
            subprocess.run(compress(program, [os.path.join(data, path)], packed, []), check=True)
            done = subprocess.run([program, "export", "-q", packed, "--to", syntax, "-o", out], check=False)
            made += [out] if done.returncode == 0 else []
        if len(made) == 3:
            groups[group] = ([], made)
        else:
            print(f"skipped: {group}: this build cannot export it")
    return groups


def counts_of(program, name, options, paths, work):
    """Instructions of compress and of test, on one thread, start of the program included"""
    folder = tempfile.mkdtemp(dir=work)
    settings = ["-T", "1", "--memory", "1G"]
    coded = count(compress(program, paths, folder + "/out/", options, *settings, "--verify", "none"), folder)
    files = sorted(glob.glob(folder + "/out/*.tsr"))
    if len(files) != len(paths):
        sys.exit(f"{name}: {len(files)} of {len(paths)} files were written")
    return coded, count([program, "test", "-q", *settings, *files], folder)


def count_all(build, groups, work):
    """{group: {"inputs": digest, "compress": instructions, "test": instructions}}"""
    program, empty = os.path.join(build, "bin/tessera"), os.path.join(work, "empty")
    with open(empty, "wb"):
        pass
    jobs = {"": ([], [empty]), **groups}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        runs = {name: pool.submit(counts_of, program, name, *job, work) for name, job in jobs.items()}
    start, found = runs[""].result(), {}
    for name, (_, paths) in groups.items():
        digest = hashlib.sha256()
        for path in paths:
            with open(path, "rb") as file:
                digest.update(file.read())
        compressed, tested = (one - less for one, less in zip(runs[name].result(), start))
        found[name] = {"inputs": digest.hexdigest()[:16], "compress": compressed, "test": tested}
    return found


def compare(found, baseline):
    """Prints a line for each group; says whether all of them hold"""
    holds = True
    for name, new in found.items():
        old = baseline.get(name)
        if old is None or old["inputs"] != new["inputs"]:
            print(f"{name}: FAILS: the baseline has not these inputs; see what changed them, then speed_guard.py BUILD --renew")
            holds = False
            continue
        for verb in ("compress", "test"):
            percent = 100 * (new[verb] - old[verb]) / old[verb]
            said = ""
            if percent > FAILS:
                said, holds = f": FAILS: slower by over {FAILS:g} %", False
            elif abs(percent) > TOLD:
                said = f": NOTE: {'slower' if percent > 0 else 'faster'} by over {TOLD:g} %"
            print(f"{name}, {verb}: {old[verb]:.5g} -> {new[verb]:.5g} instructions, {percent:+.2f} %{said}")
    return holds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--renew", action="store_true")
    parser.add_argument("--only", default="")
    a = parser.parse_args()
    compiler = compiler_of(a.build)
    with open(BASELINE, encoding="utf-8") as file:
        baselines = json.load(file)
    if compiler not in baselines and not a.renew:
        skip(f"speed_guard.json has no baseline of {compiler}; --renew takes one")
    os.environ["TESSERA_ISA"] = "avx2"
    with tempfile.TemporaryDirectory() as work:
        groups = make_inputs(os.path.abspath(a.build), work)
        if a.only and not a.renew:
            groups = {name: groups[name] for name in a.only.split(",")}
        found = count_all(os.path.abspath(a.build), groups, work)
    if a.renew:
        with open(BASELINE, "w", encoding="utf-8") as file:
            json.dump({**baselines, compiler: found}, file, indent=1, sort_keys=True)
            file.write("\n")
        return 0
    return 0 if compare(found, baselines[compiler]) else 1


if __name__ == "__main__":
    sys.exit(main())
