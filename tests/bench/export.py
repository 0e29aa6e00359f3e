"""Exports a set of DICOM files by `tessera export` to every transfer syntax, and decodes what was written by pydicom
with its plugins and frame by frame by imagecodecs (CharLS, OpenJPEG, OpenJPH, libjpeg's lossless process): all samples
must be those of the original, as pydicom reads it.

usage: python3 tests/bench/export.py BUILD FOLDER [WORK]
needs pydicom, numpy, imagecodecs and pydicom's plugins pylibjpeg, pylibjpeg-libjpeg and pylibjpeg-openjpeg (PyPI)

Without pydicom, numpy or imagecodecs it ends with the status 77. A plugin that is missing leaves its syntax to the
other decoder."""
import os
import subprocess
import sys
import tempfile
import time
import warnings

try:
    import imagecodecs
    import numpy
    import pydicom
    from pydicom.encaps import generate_frames
    from pydicom.pixels import get_decoder
except ImportError as missing:
    print(f"{missing}: nothing is compared")
    sys.exit(77)

WORDS = ["native", "jpeg-ls", "jpeg-lossless", "rle", "j2k", "htj2k"]
FRAMES = {
    "jpeg-ls": imagecodecs.jpegls_decode,
    "jpeg-lossless": imagecodecs.ljpeg_decode if imagecodecs.LJPEG.available else None,
    "j2k": imagecodecs.jpeg2k_decode,
    "htj2k": imagecodecs.htj2k_decode if getattr(imagecodecs, "HTJ2K", None) and imagecodecs.HTJ2K.available else None,
}
warnings.filterwarnings("ignore")


def words_of(array, allocated):
    """Samples as the unsigned words that stand in native pixel data."""
    return numpy.ascontiguousarray(array).astype(f"<i{8}").astype(numpy.uint64) & ((1 << allocated) - 1)


def native_words(dataset):
    """The samples of native pixel data as words, interleaved."""
    implicit, little = dataset.original_encoding
    allocated, planes = dataset.BitsAllocated, dataset.SamplesPerPixel
    data = dataset.PixelData
    if allocated <= 8 and not little and dataset["PixelData"].VR == "OW":
        data = numpy.frombuffer(data, "<u2").byteswap().tobytes()
    frames = int(dataset.get("NumberOfFrames", 1) or 1)
    count = frames * dataset.Rows * dataset.Columns * planes
    if allocated == 1:
        return numpy.unpackbits(numpy.frombuffer(data, "u1"), bitorder="little")[:count].astype(numpy.uint64)
    array = numpy.frombuffer(data, ("<" if little else ">") + f"u{allocated // 8}", count)
    if planes > 1 and dataset.PlanarConfiguration == 1:
        array = array.reshape(frames, planes, -1).transpose(0, 2, 1)
    return array.astype(numpy.uint64).ravel()


def decode(dataset):
    """All samples by pydicom, interleaved, without any change of colour."""
    decoder = get_decoder(dataset.file_meta.TransferSyntaxUID)
    wanted = ["pylibjpeg", "pyjpegls", "pydicom", "pillow"]  # gdcm ends the process where it does not like a file
    plugins = [p for p in wanted if p in decoder.available_plugins]
    array, _ = decoder.as_array(dataset, raw=True, decoding_plugin=plugins[0] if plugins else "")
    return words_of(array, dataset.BitsAllocated).ravel()


def is_same(found, samples, dataset):
    """pydicom takes bits away that are not stored, and extends signs."""
    if found.shape != samples.shape:
        return False
    mask = (1 << dataset.BitsStored) - 1
    return (found == samples).all() or ((found & mask) == (samples & mask)).all()


def decode_frames(word, dataset):
    """The same of encapsulated frames, by imagecodecs."""
    frames = generate_frames(dataset.PixelData, number_of_frames=int(dataset.get("NumberOfFrames", 1) or 1))
    decoded = [FRAMES[word](f) for f in frames]
    if dataset.SamplesPerPixel > 1:  # what has no colour transform comes plane by plane
        decoded = [a if a.shape[-1] == dataset.SamplesPerPixel else a.transpose(1, 2, 0) for a in decoded]
    return numpy.concatenate([words_of(a, dataset.BitsAllocated).ravel() for a in decoded])


def check_attributes(word, dataset):
    """What PS3.5 asks of the attributes of each transfer syntax."""
    native = word == "native"
    wrong = []
    if dataset.SamplesPerPixel > 1 and not native and dataset.PlanarConfiguration != 0:
        wrong.append("planar configuration")
    if word in ("j2k", "htj2k") and dataset.SamplesPerPixel == 3 and dataset.PhotometricInterpretation == "RGB":
        wrong.append("photometric interpretation")
    if dataset["PixelData"].VR != ("OB" if not native or dataset.BitsAllocated <= 8 else "OW"):
        wrong.append("VR")
    if len(dataset.PixelData) % 2:
        wrong.append("odd length")
    if dataset.file_meta.FileMetaInformationGroupLength < 1:
        wrong.append("group length")
    return wrong


def main():
    build, folder = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    work = os.path.abspath(sys.argv[3]) if len(sys.argv) > 3 else tempfile.mkdtemp()
    tessera = os.path.join(build, "bin", "tessera")
    run = lambda *words: subprocess.run([tessera, *words], capture_output=True, text=True)
    run("compress", "-q", "-f", "-r", folder, "-o", os.path.join(work, "coded"))
    faults = 0
    for word in WORDS:
        start = time.time()
        run("export", "-q", "-f", "-r", os.path.join(work, "coded"), "--to", word, "-o", os.path.join(work, word))
        seconds, done, by_pydicom, by_imagecodecs = time.time() - start, 0, 0, 0
        refused, size = {}, [0, 0]
        for path, _, names in os.walk(os.path.join(work, word)):
            for name in names:
                exported = os.path.join(path, name)
                original = os.path.join(folder, os.path.relpath(path, os.path.join(work, word)), name)
                original = original[: -len(f".{word}.dcm")]
                original = original if os.path.exists(original) else original + ".dcm"
                before, after = pydicom.dcmread(original, force=True), pydicom.dcmread(exported)
                size[0] += os.path.getsize(original)
                size[1] += os.path.getsize(exported)
                done += 1
                for what in check_attributes(word, after):
                    print(f"WRONG {exported}: {what}")
                    faults += 1
                try:
                    is_native = "PixelData" in before and not before["PixelData"].is_undefined_length
                    native = exported.replace(f"/{word}/", "/native/").replace(f".{word}.dcm", ".native.dcm")
                    samples = native_words(before if is_native else pydicom.dcmread(native))
                except Exception as why:
                    refused[f"original: {type(why).__name__} {str(why)[:60]}"] = name
                    continue
                if word == "native":
                    by_pydicom += 1
                    if (native_words(after) != samples).any():
                        print(f"WRONG {exported}: other samples")
                        faults += 1
                    continue
                for by, what in (("pydicom", lambda: decode(after)),
                                 ("imagecodecs", lambda: decode_frames(word, after))):
                    if by == "imagecodecs" and not FRAMES.get(word):
                        continue
                    try:
                        found = what()
                    except Exception as why:
                        refused[f"{by}: {type(why).__name__} {str(why)[:90]}"] = name
                        continue
                    same = is_same(found, samples, after) if by == "pydicom" else numpy.array_equal(found, samples)
                    if not same:
                        print(f"WRONG {exported}: other samples by {by}")
                        faults += 1
                    elif by == "pydicom":
                        by_pydicom += 1
                    else:
                        by_imagecodecs += 1
        print(f"{word:14} {done:4} files, {size[0]} -> {size[1]} bytes, {seconds:.1f} s; the same samples by pydicom "
              f"{by_pydicom}, by imagecodecs {by_imagecodecs}")
        for why, name in refused.items():
            print(f"    not decoded by {why} ({name})")
    print("all samples are the same" if faults == 0 else f"{faults} faults")
    sys.exit(1 if faults else 0)


main()
