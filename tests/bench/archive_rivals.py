"""What other tools make of the same files, on one thread. Used by archives.py."""
import time

import imagecodecs
import zstandard

import archive_classes

NAMES = ["zstd -19", "libjxl"]


class Made:
    """taken: streams that the rival coded; work: bytes of original for its rates; bytes_in: of files."""

    def __init__(self):
        self.taken = self.bytes_in = self.bytes_out = self.work = 0
        self.compress_s = self.restore_s = 0.0

    def code(self, data, encode, decode, same):
        """Codes and restores; None if it refuses or if another thing comes back."""
        begin = time.process_time()
        try:
            made = encode(data)
            middle = time.process_time()
            back = decode(made)
        except Exception:  # each codec has its own error
            return None
        end = time.process_time()
        if not same(data, back):
            return None
        self.taken += 1
        self.compress_s += middle - begin
        self.restore_s += end - middle
        return len(made)


def equal_bytes(a, b):
    return bytes(a) == bytes(b)


def equal_pixels(a, b):
    return a.dtype == b.dtype and a.squeeze().shape == b.squeeze().shape and (a.squeeze() == b.squeeze()).all()


def zstd(paths):
    made, coder, reader = Made(), zstandard.ZstdCompressor(level=19), zstandard.ZstdDecompressor()
    for path in paths:
        with open(path, "rb") as file:
            data = file.read()
        made.bytes_in += len(data)
        made.work += len(data)
        made.bytes_out += made.code(data, coder.compress, reader.decompress, equal_bytes) or len(data)
    return made


def jxl_of_jpeg(stream_class, paths):
    """Files whose JPEG streams libjxl transcodes; streams that it refuses count as they are."""
    made = Made()
    for path in paths:
        with open(path, "rb") as file:
            size = len(file.read())
        made.bytes_in += size
        made.bytes_out += size
        for stream in archive_classes.jpeg_streams(path, stream_class):
            out = made.code(stream, lambda data: imagecodecs.jpegxl_encode_jpeg(data, numthreads=1),
                            lambda data: imagecodecs.jpegxl_decode_jpeg(data, numthreads=1), equal_bytes)
            if out:
                made.bytes_out += out - len(stream)
                made.work += len(stream)
    return made


def jxl_of_png(paths):
    """Pixels alone. Images that imagecodecs does not read, or not as libjxl returns them, count as they are."""
    made = Made()
    for path in paths:
        with open(path, "rb") as file:
            data = file.read()
        made.bytes_in += len(data)
        try:
            pixels = imagecodecs.png_decode(data)
        except Exception:  # damaged
            pixels = None
        out = None if pixels is None else made.code(
            pixels, lambda image: imagecodecs.jpegxl_encode(image, lossless=True, effort=7, numthreads=1),
            lambda image: imagecodecs.jpegxl_decode(image, numthreads=1), equal_pixels)
        made.bytes_out += out or len(data)
        made.work += len(data) if out else 0
    return made


def measure(stream_class, paths):
    rivals = {"zstd -19": zstd(paths)}
    if stream_class in archive_classes.JPEG_DICOM or stream_class == "JPEG file":
        rivals["libjxl"] = jxl_of_jpeg(stream_class, paths)
    if stream_class == "PNG":
        rivals["libjxl"] = jxl_of_png(paths)
    return rivals
