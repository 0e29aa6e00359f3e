"""The shared library: its structures, constants and functions, as app/tessera.h declares them."""

from __future__ import annotations

import ctypes
import os
from ctypes import (
    CFUNCTYPE,
    POINTER,
    Structure,
    c_bool,
    c_char,
    c_char_p,
    c_double,
    c_int,
    c_int32,
    c_int64,
    c_size_t,
    c_uint8,
    c_uint16,
    c_uint32,
    c_uint64,
    c_void_p,
)
from pathlib import Path
from typing import Any, TypeVar

NO_OFFSET = 2**64 - 1
ALL_MEMBERS = 2**32 - 1
MEDIUM_PATH, MEDIUM_MEMORY, MEDIUM_DESCRIPTOR, MEDIUM_CALLS = range(4)
TASK_COMPRESS, TASK_RESTORE, TASK_TEST, TASK_CALL = range(4)
CONTENT_ORIGINAL, CONTENT_TSR, CONTENT_SERIES = range(3)
PATHS = ("predict", "transform")
CODERS = ("by-effort", "huffman", "cavlc", "rans")
ENGINES = ("auto", "cpu", "cuda")
VERIFY = ("cpu", "none", "engine")
QUALITIES = ("diagnostic", "visually-lossless", "web")
TUNES = ("by-loss", "psnr", "ssim")
PROMISE_NONE, PROMISE_FILE, PROMISE_SAMPLES, PROMISE_LOSSY = range(4)
LOSSLESS, LOSS_QP, LOSS_MAX_ERROR, LOSS_PSNR, LOSS_BYTES, LOSS_RATIO, LOSS_QUALITY, LOSS_SSIM = range(8)

ReadCall = CFUNCTYPE(c_int64, c_void_p, c_uint64, c_void_p, c_size_t)
WriteCall = CFUNCTYPE(c_int64, c_void_p, c_void_p, c_size_t)
CancelledCall = CFUNCTYPE(c_bool, c_void_p)
ProgressCall = CFUNCTYPE(None, c_void_p, c_int, c_uint64, c_uint64)
BeginCall = CFUNCTYPE(None, c_void_p, c_size_t)


class tsr_error(Structure):
    _fields_ = [("status", c_int), ("offset", c_uint64), ("text", c_char * 512), ("system", c_int)]


class tsr_image(Structure):
    _fields_ = [
        ("columns", c_uint32),
        ("rows", c_uint32),
        ("frames", c_uint32),
        ("components", c_uint8),
        ("bits_allocated", c_uint8),
        ("bits_stored", c_uint8),
        ("high_bit", c_uint8),
        ("is_signed", c_bool),
        ("planar", c_bool),
        ("big_endian", c_bool),
        ("swapped", c_bool),
        ("exact_only", c_bool),
        ("is_float", c_bool),
        ("tile_side", c_uint16),
        ("reserved", c_uint8 * 12),
        ("stacked_rows", c_uint32),
    ]


class tsr_coding(Structure):
    _fields_ = [
        ("path", c_int),
        ("coder", c_int),
        ("lossy", c_bool),
        ("tune", c_uint8),
        ("dc_choice", c_uint16),
        ("reserved", c_uint8 * 12),
        ("qp_eighths", c_int32),
        ("effort", c_int),
        ("max_error", c_uint32),
        ("coarser_by", c_uint32),
        ("coarser_frame", c_uint32),
        ("coarser_from", c_uint32),
    ]


class tsr_region(Structure):
    _fields_ = [("column", c_uint32), ("row", c_uint32), ("columns", c_uint32), ("rows", c_uint32)]


class tsr_roi(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("rectangles", POINTER(tsr_region)),
        ("rectangle_count", c_uint32),
        ("mask", POINTER(c_uint8)),
        ("mask_columns", c_uint32),
        ("mask_rows", c_uint32),
        ("body", c_bool),
    ]


class tsr_exact(Structure):
    _fields_ = [("samples", c_uint64), ("rectangles", c_uint32), ("box", tsr_region)]


class tsr_compress_options(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("effort", c_int),
        ("coder", c_int),
        ("path", c_int),
        ("loss", c_int),
        ("qp_eighths", c_int32),
        ("max_error", c_uint32),
        ("psnr_hundredths", c_uint32),
        ("quality", c_int),
        ("byte_limit", c_uint64),
        ("ratio_thousandths", c_uint64),
        ("verify", c_int),
        ("allow_lossy", c_bool),
        ("samples_only", c_bool),
        ("range", c_uint32),
        ("least_db", c_uint32),
        ("within_ratio", c_bool),
        ("lossless_rest", c_bool),
        ("tile_side", c_uint16),
        ("independent", c_bool),
        ("reserved", c_uint8 * 3),
        ("tune", c_int),
        ("ssim_ten_thousandths", c_uint32),
        ("roi", POINTER(tsr_roi)),
        ("first", POINTER(tsr_roi)),
    ]


class tsr_engine_options(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("choice", c_int),
        ("threads", c_int),
        ("memory_bytes", c_uint64),
        ("gpus", POINTER(c_int)),
        ("gpu_count", c_int),
        ("gpu_memory_bytes", c_uint64),
        ("expected_bytes", c_uint64),
        ("expected", POINTER(tsr_compress_options)),
    ]


class tsr_stored_values(Structure):
    _fields_ = [("lowest", c_int32), ("highest", c_int32)]


class tsr_watch(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("is_cancelled", CancelledCall),
        ("progress", ProgressCall),
        ("context", c_void_p),
    ]


class tsr_data_source(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("medium", c_int),
        ("path", c_char_p),
        ("memory", c_void_p),
        ("byte_count", c_uint64),
        ("descriptor", c_int),
        ("base", c_bool),
        ("read", ReadCall),
        ("context", c_void_p),
        ("name", c_char_p),
        ("kept_count", c_uint32),
        ("kept", tsr_stored_values * 4),
        ("watch", POINTER(tsr_watch)),
        ("key", c_void_p),
    ]


class tsr_buffer(Structure):
    _fields_ = [("bytes", c_void_p), ("count", c_size_t)]


class tsr_file_state(Structure):
    _fields_ = [
        ("device", c_uint64),
        ("inode", c_uint64),
        ("bytes", c_uint64),
        ("modified_s", c_int64),
        ("changed_s", c_int64),
        ("modified_ns", c_uint32),
        ("changed_ns", c_uint32),
    ]


class tsr_data_sink(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("medium", c_int),
        ("path", c_char_p),
        ("buffer", POINTER(tsr_buffer)),
        ("descriptor", c_int),
        ("temporary", c_char_p),
        ("write", WriteCall),
        ("context", c_void_p),
        ("overwrite", c_bool),
        ("is_bounded", c_bool),
        ("root", c_size_t),
        ("syncs_later", c_bool),
        ("written", c_void_p),
        ("key", c_void_p),
    ]


class tsr_window_loss(Structure):
    _fields_ = [
        ("center", c_double),
        ("width", c_double),
        ("samples", c_uint64),
        ("rmse", c_double),
        ("psnr_db", c_double),
        ("is_judged", c_bool),
        ("ssim", c_double),
        ("largest_error", c_double),
    ]


class tsr_report(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("kind", c_int),
        ("way", c_int),
        ("promise", c_int),
        ("has_image", c_bool),
        ("reason", c_char * 256),
        ("bytes_in", c_uint64),
        ("bytes_out", c_uint64),
        ("pixel_bytes", c_uint64),
        ("payload_bytes", c_uint64),
        ("samples", c_uint64),
        ("original_hash", c_uint8 * 16),
        ("image", tsr_image),
        ("coding", tsr_coding),
        ("engine", c_char_p),
        ("fallback", c_char * 160),
        ("verified_by", c_char_p),
        ("read_from_disk", c_bool),
        ("encode_s", c_double),
        ("verify_s", c_double),
        ("read_s", c_double),
        ("write_s", c_double),
        ("wait_s", c_double),
        ("psnr_db", c_double),
        ("max_error", c_int64),
        ("tries", c_int),
        ("verified", c_bool),
        ("damage", c_char * 160),
        ("output", tsr_file_state),
        ("range", c_uint32),
        ("psnr_stored_db", c_double),
        ("windows", c_uint32),
        ("window", tsr_window_loss * 4),
        ("ssim", c_double),
        ("modality", c_char * 20),
        ("ratio_limit", c_uint32),
        ("windows_left_out", c_uint32),
        ("left_out_psnr_db", c_double),
        ("windows_note", c_char * 160),
        ("kept_count", c_uint32),
        ("kept", tsr_stored_values * 4),
        ("files", c_uint32),
        ("base_bytes", c_uint64),
        ("base_psnr_db", c_double),
        ("base_max_error", c_int64),
        ("exact", tsr_exact),
    ]


class tsr_info(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("kind", c_int),
        ("way", c_int),
        ("promise", c_int),
        ("returns", c_int),
        ("has_image", c_bool),
        ("reason", c_char * 256),
        ("members", c_uint32),
        ("image", tsr_image),
        ("coding", tsr_coding),
        ("file_bytes", c_uint64),
        ("original_bytes", c_uint64),
        ("payload_bytes", c_uint64),
        ("sections", c_uint64),
        ("original_hash", c_uint8 * 16),
        ("samples_hash", c_uint8 * 16),
        ("has_samples_hash", c_bool),
        ("max_error", c_int64),
        ("psnr_db", c_double),
        ("damage", c_char_p),
        ("has_origin", c_bool),
        ("modified_s", c_int64),
        ("modified_ns", c_uint32),
        ("permissions", c_uint32),
        ("id", c_uint64),
        ("original_damage", c_char * 160),
        ("range", c_uint32),
        ("psnr_stored_db", c_double),
        ("windows", c_uint32),
        ("window", tsr_window_loss * 4),
        ("kept_count", c_uint32),
        ("kept", tsr_stored_values * 4),
        ("files", c_uint32),
        ("units", c_uint32),
        ("video_columns", c_uint32),
        ("video_rows", c_uint32),
        ("video_chroma", c_uint32),
        ("coded_bits", c_uint32),
        ("coded_in_order", c_bool),
        ("encrypted", c_bool),
        ("base_bytes", c_uint64),
        ("base_psnr_db", c_double),
        ("base_max_error", c_int64),
        ("exact", tsr_exact),
        ("tiles", c_uint32),
        ("first_tiles", c_uint32),
        ("linked", c_bool),
    ]


class tsr_element(Structure):
    _fields_ = [
        ("tag", c_uint32),
        ("vr", c_char * 4),
        ("depth", c_uint32),
        ("value", c_void_p),
        ("count", c_size_t),
    ]


class tsr_metadata(Structure):
    _fields_ = [
        ("kind", c_int),
        ("big_endian", c_bool),
        ("bytes", c_void_p),
        ("byte_count", c_size_t),
        ("elements", POINTER(tsr_element)),
        ("element_count", c_size_t),
    ]


TaskCall = CFUNCTYPE(c_int, c_void_p, c_void_p, POINTER(tsr_report), POINTER(tsr_error))


class tsr_task(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("kind", c_int),
        ("source", tsr_data_source),
        ("reader", c_void_p),
        ("member", c_uint32),
        ("sink", tsr_data_sink),
        ("compress", POINTER(tsr_compress_options)),
        ("call", TaskCall),
        ("context", c_void_p),
    ]


class tsr_result(Structure):
    _fields_ = [
        ("index", c_size_t),
        ("status", c_int),
        ("report", POINTER(tsr_report)),
        ("error", POINTER(tsr_error)),
    ]


class tsr_set_options(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("results_at_once", c_bool),
        ("is_cancelled", CancelledCall),
        ("on_begin", BeginCall),
    ]


ResultCall = CFUNCTYPE(None, c_void_p, POINTER(tsr_result))

#: All structures; a test compares their layouts with those of the C compiler.
STRUCTURES: tuple[type[Structure], ...] = (
    tsr_error,
    tsr_image,
    tsr_coding,
    tsr_compress_options,
    tsr_engine_options,
    tsr_watch,
    tsr_data_source,
    tsr_buffer,
    tsr_file_state,
    tsr_data_sink,
    tsr_report,
    tsr_info,
    tsr_element,
    tsr_metadata,
    tsr_region,
    tsr_task,
    tsr_result,
    tsr_set_options,
)

_error = POINTER(tsr_error)
_source = POINTER(tsr_data_source)
_sink = POINTER(tsr_data_sink)
_image = POINTER(tsr_image)
_report = POINTER(tsr_report)
_options = POINTER(tsr_compress_options)

#: Name of each function: what it returns, and its parameters.
FUNCTIONS: dict[str, tuple[Any, list[Any]]] = {
    "tsr_version": (c_char_p, []),
    "tsr_format_version": (ctypes.c_uint, []),
    "tsr_build_features": (c_char_p, []),
    "tsr_status_name": (c_char_p, [c_int]),
    "tsr_kind_name": (c_char_p, [c_int]),
    "tsr_way_name": (c_char_p, [c_int]),
    "tsr_returns_name": (c_char_p, [c_int]),
    "tsr_path_name": (c_char_p, [c_int]),
    "tsr_coder_name": (c_char_p, [c_int]),
    "tsr_check_image": (c_int, [_image, _error]),
    "tsr_frame_bits": (c_uint64, [_image]),
    "tsr_check_options": (c_int, [_options, _error]),
    "tsr_engine_create": (c_int, [POINTER(tsr_engine_options), POINTER(c_void_p), _error]),
    "tsr_engine_destroy": (None, [c_void_p]),
    "tsr_engine_name": (c_char_p, [c_void_p]),
    "tsr_engine_threads": (c_int, [c_void_p]),
    "tsr_engine_note": (c_char_p, [c_void_p]),
    "tsr_encode_bound": (c_size_t, [_image]),
    "tsr_encode_frame": (
        c_int,
        [c_void_p, _image, POINTER(tsr_coding), c_void_p, c_void_p, POINTER(c_size_t), _error],
    ),
    "tsr_decode_frame": (c_int, [c_void_p, _image, c_void_p, c_size_t, c_void_p, _error]),
    "tsr_buffer_free": (None, [POINTER(tsr_buffer)]),
    "tsr_compress": (c_int, [c_void_p, _source, _sink, _options, _report, _error]),
    "tsr_compress_raster": (c_int, [c_void_p, _image, _source, _sink, _options, _report, _error]),
    "tsr_restore": (c_int, [c_void_p, _source, _sink, _report, _error]),
    "tsr_test": (c_int, [c_void_p, _source, _report, _error]),
    "tsr_open": (c_int, [c_void_p, _source, POINTER(c_void_p), _error]),
    "tsr_close": (None, [c_void_p]),
    "tsr_reader_id": (c_uint64, [c_void_p]),
    "tsr_read_id": (c_int, [_source, POINTER(c_uint64), _error]),
    "tsr_reader_content": (c_int, [c_void_p]),
    "tsr_reader_members": (c_uint32, [c_void_p]),
    "tsr_reader_name": (c_char_p, [c_void_p, c_uint32]),
    "tsr_read_info": (c_int, [c_void_p, c_uint32, POINTER(tsr_info), _error]),
    "tsr_read_exact": (c_int, [c_void_p, c_uint32, POINTER(tsr_region), c_uint32, POINTER(c_uint32), _error]),
    "tsr_reader_image": (c_int, [c_void_p, c_uint32, _image, _error]),
    "tsr_reader_images": (c_int, [c_void_p, c_uint32, POINTER(c_uint32), _error]),
    "tsr_open_image": (c_int, [c_void_p, c_uint32, c_uint32, POINTER(c_void_p), _error]),
    "tsr_list_header": (c_int, [c_void_p, c_uint32, c_int, POINTER(tsr_buffer), _error]),
    "tsr_read_header": (c_int, [c_void_p, c_uint32, POINTER(POINTER(tsr_metadata)), _error]),
    "tsr_metadata_free": (None, [POINTER(tsr_metadata)]),
    "tsr_read_frame": (c_int, [c_void_p, c_uint32, c_uint32, c_void_p, c_size_t, c_size_t, _error]),
    "tsr_read_region": (
        c_int,
        [c_void_p, c_uint32, c_uint32, POINTER(tsr_region), c_void_p, c_size_t, c_size_t, _error],
    ),
    "tsr_read_original": (
        c_int,
        [c_void_p, c_uint32, c_uint64, c_void_p, c_size_t, POINTER(c_size_t), _error],
    ),
    "tsr_reader_stream": (
        c_int,
        [c_void_p, c_uint32, c_uint32, c_void_p, c_size_t, POINTER(c_size_t), _error],
    ),
    "tsr_restore_member": (c_int, [c_void_p, c_uint32, _sink, _report, _error]),
    "tsr_test_member": (c_int, [c_void_p, c_uint32, _report, _error]),
    "tsr_sync_folders": (c_int, [_error]),
    "tsr_key_open": (c_int, [_source, c_int, c_uint64, POINTER(c_void_p), _error]),
    "tsr_key_close": (None, [c_void_p]),
    "tsr_common_ranges": (
        c_int,
        [c_void_p, POINTER(POINTER(tsr_data_source)), c_uint32, c_bool, POINTER(c_uint32), _error],
    ),
    "tsr_run_set": (
        c_int,
        [c_void_p, POINTER(tsr_task), c_size_t, POINTER(tsr_set_options), ResultCall, c_void_p, _error],
    ),
}

_Sized = TypeVar("_Sized", bound=Structure)


def sized(kind: type[_Sized]) -> _Sized:
    """A structure of zeros whose size field is set (TSR_SIZED)."""
    made = kind()
    made.size = ctypes.sizeof(kind)
    return made


def _find() -> str:
    """The library of the package's folder, or that of TESSERA_LIBRARY, which tests of a build tree set."""
    named = os.environ.get("TESSERA_LIBRARY")
    if named:
        return named
    folder = Path(__file__).resolve().parent
    for path in sorted(folder.glob("lib/libtessera.so*")):
        return str(path)
    raise ImportError(f"there is no libtessera.so in {folder / 'lib'}: install the wheel, or set TESSERA_LIBRARY")


def _load() -> ctypes.CDLL:
    library = ctypes.CDLL(_find())
    for name, (result, parameters) in FUNCTIONS.items():
        function = getattr(library, name)
        function.restype = result
        function.argtypes = parameters
    return library


#: Its functions release the GIL while they run.
library = _load()
