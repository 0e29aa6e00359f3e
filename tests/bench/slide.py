"""A slide of JPEG tiles: makes a DICOM of COUNT tiles, 256 x 256, quality 80, of a smooth texture like that of tissue.
usage: slide.py OUT.dcm COUNT         makes the file, and tells the bytes of its JPEG streams
       slide.py OUT.dcm COUNT j2k     the same of irreversible JPEG 2000, 15:1
       slide.py OUT.dcm COUNT small   JPEG tiles of 64 x 64: many frames in a file that is soon compressed
       slide.py --read FILE.tsr       times opening it, and reading 20 tiles by chance: their streams, their pixels
Needs numpy, and Pillow and pydicom, or the Python package of Tessera."""

import io
import random
import resource
import struct
import sys
import time

import numpy as np

SIDE = 4096


def smooth(random_state, step):
    from PIL import Image

    coarse = random_state.normal(0, 1, (SIDE // step + 2, SIDE // step + 2)).astype("f4")
    return np.asarray(Image.fromarray(coarse).resize((SIDE, SIDE), Image.BICUBIC))


def encode(tile, codec):
    from PIL import Image

    stream, image = io.BytesIO(), Image.fromarray(np.ascontiguousarray(tile))
    if codec == "j2k":
        image.save(stream, "JPEG2000", no_jp2=True, irreversible=True, mct=1, quality_layers=[15])
    else:
        image.save(stream, "JPEG", quality=80)
    return stream.getvalue()


def make(path, count, codec="jpeg"):
    from pydicom.dataset import Dataset, FileMetaDataset

    state, side = np.random.default_rng(3), 64 if codec == "small" else 256
    base = sum(smooth(state, step) * weight for step, weight in ((256, 30), (64, 25), (16, 18), (6, 10)))
    base = base + state.normal(0, 4, (SIDE, SIDE))
    nuclei = (smooth(state, 12) > 1.0) * -60
    channels = (205 + base * 0.5 + nuclei, 150 + base * 0.8 + nuclei, 190 + base * 0.45 + nuclei * 0.6)
    picture = np.clip(np.stack(channels, -1), 0, 255).astype("u1")
    meta = FileMetaDataset()
    meta.TransferSyntaxUID = "1.2.840.10008.1.2.4." + ("91" if codec == "j2k" else "50")
    meta.MediaStorageSOPClassUID, meta.MediaStorageSOPInstanceUID = "1.2.840.10008.5.1.4.1.1.77.1.6", "1.2.3.4.5"
    slide = Dataset()
    slide.file_meta = meta
    slide.SOPClassUID, slide.SOPInstanceUID, slide.Modality = meta.MediaStorageSOPClassUID, "1.2.3.4.5", "SM"
    slide.Rows = slide.Columns = side
    slide.NumberOfFrames, slide.SamplesPerPixel, slide.PhotometricInterpretation = count, 3, "YBR_ICT" if codec == "j2k" else "YBR_FULL_422"
    slide.PlanarConfiguration, slide.BitsAllocated, slide.BitsStored, slide.HighBit = 0, 8, 8, 7
    slide.PixelRepresentation, slide.LossyImageCompression = 0, "01"
    slide.save_as(path, enforce_file_format=True)
    total = 0
    with open(path, "ab") as out:
        out.write(struct.pack("<HH2sHI", 0x7FE0, 0x10, b"OB", 0, 0xFFFFFFFF) + struct.pack("<HHI", 0xFFFE, 0xE000, 0))
        for k in range(count):
            y, x = state.integers(0, SIDE - side, 2)
            tile = picture[y : y + side, x : x + side]
            tile = (tile, tile[::-1], tile[:, ::-1])[k % 3]
            data = encode(tile, codec)
            data += b"\0" * (len(data) % 2)
            total += len(data)
            out.write(struct.pack("<HHI", 0xFFFE, 0xE000, len(data)) + data)
        out.write(struct.pack("<HHI", 0xFFFE, 0xE0DD, 0))
    print(f"{count} tiles, {total} bytes of {codec}, {total / count:.0f} a tile")


def read(path):
    import tessera

    start = time.perf_counter()
    reader = tessera.open(path, engine="cpu")
    print(f"opened in {(time.perf_counter() - start) * 1e3:.1f} ms: {len(reader)} tiles")
    random.seed(1)
    tiles = [random.randrange(len(reader)) for _ in range(20)]
    for what, take in (("stream", reader.stream), ("pixels", reader.__getitem__)):
        times = []
        for k in tiles:
            start = time.process_time()
            take(k)
            times.append((time.process_time() - start) * 1e3)
        print(f"{what}, ms of the processor: first {times[0]:.1f} ms, median {sorted(times)[10]:.1f}, longest of the others {max(times[1:]):.1f}")
    print(f"peak memory of this process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    read(sys.argv[2]) if sys.argv[1] == "--read" else make(sys.argv[1], int(sys.argv[2]), *sys.argv[3:])
