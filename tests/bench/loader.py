#!/usr/bin/env python3
"""Random slices of a series, as a loader for training reads them, from each form that it may be kept in.

    python3 tests/bench/loader.py BUILD FOLDER [--slices 40] [--rounds 5] [--only WORD,...] [--work FOLDER]

BUILD   a build, whose libtessera.so the package uses
FOLDER  DICOM files of one size, not compressed; they are sorted by name

Each way makes its files of all slices, and reads slices in an order of chance: on one thread, on two threads, and in four
processes, which share the slices. What it reads is compared with the series. Rounds go over all ways in turns; a figure is the
median of the rounds after a first one. Columns: bytes as a ratio to those of native DICOM; processor time to make the files; milliseconds of
processor time a slice on one thread; the same on two threads and in four processes; slices a second by the clock, of each. Times of
the clock depend on what else the machine does. All codecs have one thread a call. WORK: /dev/shm if that exists.
Needs numpy, pydicom, pyjpegls, imagecodecs, blosc2, zarr 3, nibabel; a way whose package is missing is left out, and said.
"""
import argparse
import functools
import importlib.util
import multiprocessing
import os
import random
import shutil
import statistics
import sys
import tempfile
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import machine
import numpy as np

PACKAGE = Path(__file__).resolve().parents[2] / "app" / "python"
PROCESSES, MANY = 4, 16
warnings.filterwarnings("ignore")
own = threading.local()  # what a thread has open


def once(make):
    """What a thread opens, once."""
    kept = own.__dict__.setdefault("kept", {})
    key = (make.func, make.args)
    if key not in kept:
        kept[key] = make()
    return kept[key]


@functools.cache
def files(folder, ending):
    return sorted(Path(folder).glob(f"*{ending}"))


@functools.cache
def engine():
    import tessera

    return tessera.engine("cpu", threads=1)


def tsr(path):
    import tessera

    return tessera.open(path, engine=engine())


class Way:
    """A form: its name, the packages that it needs, how a folder of it is made, and how a slice is read from that."""

    def __init__(self, name, needs, make, read):
        self.name, self.needs, self.make, self.read = name, needs, make, read
        self.bytes, self.made_s, self.rounds = 0, 0.0, []


def make_native(folder, volume, sources):
    for path in sources:
        shutil.copy(path, folder / (path.stem + ".dcm"))


def read_native(folder, i, volume):
    import pydicom

    return np.frombuffer(pydicom.dcmread(files(folder, ".dcm")[i]).PixelData, volume.dtype).reshape(volume.shape[1:])


def make_jpeg_ls(folder, volume, sources):
    import pydicom
    from pydicom.uid import JPEGLSLossless

    for path in sources:
        data = pydicom.dcmread(path)
        data.compress(JPEGLSLossless)
        data.save_as(folder / (path.stem + ".dcm"))


def read_jpeg_ls(folder, i, volume):
    import pydicom

    return pydicom.dcmread(files(folder, ".dcm")[i]).pixel_array


def read_jpeg_ls_imagecodecs(folder, i, volume):
    import imagecodecs
    import pydicom
    from pydicom.encaps import get_frame

    return imagecodecs.jpegls_decode(get_frame(pydicom.dcmread(files(folder, ".dcm")[i]).PixelData, 0, number_of_frames=1)).view(volume.dtype)


def make_tsr(effort):
    def make(folder, volume, sources):
        import tessera

        for path in sources:
            tessera.compress_file(path, folder / (path.stem + ".tsr"), effort=effort, engine=engine())
    return make


def read_tsr(folder, i, volume):
    with tsr(files(folder, ".tsr")[i]) as reader:
        return reader[0]


def read_tsr_pydicom(folder, i, volume):
    import tessera

    return tessera.dcmread(files(folder, ".tsr")[i], engine=engine()).pixel_array


def make_volume(effort):
    def make(folder, volume, sources):
        import tessera

        tessera.compress_file(volume, folder / "v.tsr", effort=effort, engine=engine())
    return make


def read_volume(folder, i, volume):
    return once(functools.partial(tsr, folder / "v.tsr"))[i]


def make_npz(folder, volume, sources):
    for i, values in enumerate(volume):
        np.savez_compressed(folder / f"{i:05}.npz", a=values)


def read_npz(folder, i, volume):
    return np.load(files(folder, ".npz")[i])["a"]


def make_blosc2(folder, volume, sources):
    import blosc2

    blosc2.set_nthreads(1)
    parameters = {"codec": blosc2.Codec.ZSTD, "clevel": 5, "filters": [blosc2.Filter.SHUFFLE], "typesize": volume.itemsize, "nthreads": 1}
    blosc2.asarray(volume, chunks=(1, *volume.shape[1:]), urlpath=str(folder / "v.b2nd"), cparams=parameters, mode="w")


def open_blosc2(path):
    import blosc2

    return blosc2.open(path, dparams={"nthreads": 1})


def read_blosc2(folder, i, volume):
    return once(functools.partial(open_blosc2, str(folder / "v.b2nd")))[i]


def make_zarr(planes, codec, shards=None, form=3):
    def make(folder, volume, sources):
        import zarr

        chunk = (planes, *volume.shape[1:])
        options = {"shards": (shards, *volume.shape[1:])} if shards else {}
        if codec == "blosc":
            options["compressors"] = zarr.codecs.BloscCodec(cname="zstd", clevel=5, shuffle="shuffle")
        elif codec == "tessera" and form == 3:
            from tessera.zarr import TesseraCodec

            options.update(serializer=TesseraCodec(), compressors=None)
        elif codec == "tessera":
            from tessera.numcodecs import Tessera

            options["compressors"] = Tessera(shape=chunk, dtype=volume.dtype)
        zarr.create_array(folder / "v.zarr", data=volume, chunks=chunk, zarr_format=form, **options)
    return make


def open_zarr(path):
    import zarr

    return zarr.open_array(path, mode="r")


def read_zarr(folder, i, volume):
    return once(functools.partial(open_zarr, folder / "v.zarr"))[i]


def make_nifti(ending):
    def make(folder, volume, sources):
        import nibabel

        image = nibabel.Nifti1Image(np.ascontiguousarray(volume.T), np.eye(4))
        if ending == ".nii.tsr":
            import tessera

            tessera.compress_file(image.to_bytes(), folder / "v.nii.tsr", engine=engine())
        else:
            nibabel.save(image, folder / f"v{ending}")
    return make


def read_nifti(folder, i, volume):
    import nibabel

    return np.asanyarray(nibabel.load(next(iter(folder.glob("v.nii*")))).dataobj[..., i]).T


def read_nifti_kept(folder, i, volume):
    import nibabel
    import tessera.adapters.nibabel

    tessera.adapters.nibabel.register()
    return np.asanyarray(once(functools.partial(nibabel.load, folder / "v.nii.tsr")).dataobj[..., i]).T


def ways():
    zarr = ["zarr"]
    yield Way("DICOM, native: dcmread, frombuffer", ["pydicom"], make_native, read_native)
    yield Way("DICOM, JPEG-LS: pixel_array (pyjpegls)", ["pydicom", "jpeg_ls"], make_jpeg_ls, read_jpeg_ls)
    yield Way("DICOM, JPEG-LS: imagecodecs", ["pydicom", "jpeg_ls", "imagecodecs"], make_jpeg_ls, read_jpeg_ls_imagecodecs)
    for effort in (1, 5, 9):
        yield Way(f".tsr a slice, -{effort}: open()[0]", [], make_tsr(effort), read_tsr)
    yield Way(".tsr a slice, -5: dcmread().pixel_array", ["pydicom"], make_tsr(5), read_tsr_pydicom)
    for effort in (1, 5, 9):
        yield Way(f".tsr of the array, -{effort}: reader[i]", [], make_volume(effort), read_volume)
    yield Way("npz a slice", [], make_npz, read_npz)
    yield Way("blosc2, zstd 5, shuffle, chunk of 1", ["blosc2"], make_blosc2, read_blosc2)
    yield Way("Zarr 3, zstd, chunk of 1", zarr, make_zarr(1, None), read_zarr)
    yield Way("Zarr 3, Blosc zstd 5, chunk of 1", zarr, make_zarr(1, "blosc"), read_zarr)
    yield Way("Zarr 3, tessera, chunk of 1", zarr, make_zarr(1, "tessera"), read_zarr)
    yield Way(f"Zarr 3, tessera, chunk of 1 in shards of {MANY}", zarr, make_zarr(1, "tessera", MANY), read_zarr)
    yield Way(f"Zarr 3, tessera, chunk of {MANY}", zarr, make_zarr(MANY, "tessera"), read_zarr)
    yield Way("Zarr 2, tessera, chunk of 1", zarr, make_zarr(1, "tessera", form=2), read_zarr)
    yield Way("nii.gz: nibabel", ["nibabel"], make_nifti(".nii.gz"), read_nifti)
    yield Way("nii: nibabel", ["nibabel"], make_nifti(".nii"), read_nifti)
    yield Way(".tsr of nii, -5: nibabel by its adapter", ["nibabel"], make_nifti(".nii.tsr"), read_nifti_kept)


def begin(path):
    """What a process needs, also one of the four."""
    global volume
    sys.path.insert(0, str(PACKAGE))
    volume = np.load(path, mmap_mode="r")
    if importlib.util.find_spec("blosc2"):
        import blosc2

        blosc2.set_nthreads(1)
    if importlib.util.find_spec("zarr"):
        import numcodecs.blosc
        import zarr

        from tessera.numcodecs import Tessera
        from tessera.zarr import TesseraCodec

        numcodecs.blosc.set_nthreads(1)
        numcodecs.register_codec(Tessera)
        zarr.registry.register_codec("tessera", TesseraCodec)


def read_all(name, folder, indices):
    """Reads slices in this process; returns the processor time."""
    way, before = next(way for way in ways() if way.name == name), time.process_time()
    for i in indices:
        way.read(folder, i, volume)
    return time.process_time() - before


def measure(way, folder, indices, pool):
    """Seconds of the processor and of the clock a slice: one thread, two threads, four processes."""
    found, count = [], len(indices)
    cpu, clock = time.process_time(), time.perf_counter()
    for i in indices:
        way.read(folder, i, volume)
    found += [(time.process_time() - cpu) / count, (time.perf_counter() - clock) / count]
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(lambda i: way.read(folder, i, volume), indices[:2]))  # each opens what it needs
        cpu, clock = time.process_time(), time.perf_counter()
        list(threads.map(lambda i: way.read(folder, i, volume), indices))
        found += [(time.process_time() - cpu) / count, (time.perf_counter() - clock) / count]
    parts = [(way.name, folder, indices[k::PROCESSES]) for k in range(PROCESSES)]
    pool.starmap(read_all, [(name, folder, part[:1]) for name, folder, part in parts], 1)
    clock = time.perf_counter()
    cpu = sum(pool.starmap(read_all, parts, 1))
    found += [cpu / count, (time.perf_counter() - clock) / count]
    return found


def prepare(way, folder, sources):
    folder.mkdir()
    before = time.process_time()
    way.make(folder, volume, sources)
    way.made_s = time.process_time() - before
    way.bytes = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    for i in (0, len(volume) - 1, len(volume) // 2):
        if not np.array_equal(way.read(folder, i, volume), volume[i]):
            sys.exit(f"{way.name}: slice {i} is another one")


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("build", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--slices", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="")
    parser.add_argument("--work", type=Path, default=Path("/dev/shm" if os.path.isdir("/dev/shm") else "."))
    given = parser.parse_args()
    os.environ["TESSERA_LIBRARY"] = str((given.build / "lib" / "libtessera.so").resolve())
    import pydicom

    sources = sorted(path for path in given.folder.iterdir() if path.is_file())
    slices = np.stack([pydicom.dcmread(path).pixel_array for path in sources])
    words = [word for word in given.only.split(",") if word]
    with tempfile.TemporaryDirectory(dir=given.work, prefix="tessera-loader-") as name:
        work = Path(name)
        np.save(work / "volume.npy", slices)
        begin(work / "volume.npy")
        chosen = []
        for way in ways():
            missing = [package for package in way.needs if not importlib.util.find_spec(package)]
            if missing:
                print(f"left out, since {', '.join(missing)} is missing: {way.name}")
            elif not words or any(word in way.name for word in words):
                chosen.append((way, work / str(len(chosen))))
                prepare(*chosen[-1], sources)
        order = random.Random(1)
        with multiprocessing.get_context("spawn").Pool(PROCESSES, begin, (work / "volume.npy",)) as pool:
            for number in range(given.rounds + 1):  # the first one, in which all is imported, does not count
                for way, folder in chosen:
                    count = max(4, given.slices // 10) if way.name.startswith("nii.gz") else given.slices
                    way.rounds.append(measure(way, folder, [order.randrange(len(slices)) for _ in range(count)], pool))
                print(f"round {number} of {given.rounds}", file=sys.stderr, flush=True)
        native = sum(path.stat().st_size for path in sources)
        print(f"{machine.model()}, {os.cpu_count()} processors, load {os.getloadavg()[0]:.0f}; {slices.shape} of {slices.dtype}\n")
        print("| way | bytes | made, s | ms | ms, 2 threads | ms, 4 processes | slices/s | 2 threads | 4 processes |")
        print("|" + "---|" * 9)
        for way, _ in chosen:
            one = [statistics.median(values) for values in zip(*way.rounds[1:])]
            print(f"| {way.name} | {way.bytes / native:.3f} | {way.made_s:.2f} |" +
                  "".join(f" {one[i] * 1000:.2f} |" for i in (0, 2, 4)) + "".join(f" {1 / one[i]:.0f} |" for i in (1, 3, 5)), flush=True)


volume = None
if __name__ == "__main__":
    main()
