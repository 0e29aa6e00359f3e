"""NIfTI in a .tsr as images of nibabel, of which those frames are decoded that a slice touches."""

from __future__ import annotations

import gzip
import io
from typing import Any

import nibabel
import numpy as np
from nibabel.arrayproxy import ArrayProxy
from nibabel.fileslice import canonical_slicers
from nibabel.imageclasses import all_image_classes

import tessera

__all__ = ["register"]


class _Proxy(ArrayProxy):
    """Scaling, types and indices are nibabel's; the stored values are those of a reader, which is its file."""

    def _should_keep_file_open(self, keep_file_open: Any) -> tuple[bool, bool]:
        return False, False

    def _get_unscaled(self, slicer: Any) -> Any:
        reader, key = self.file_like, canonical_slicers(slicer, self._shape)
        columns, *others = [part for part in key if part is not None]
        # A frame is some rows along the first axis. All rows of the file are numbered, and taken frame by frame.
        rows = np.arange(np.prod(self._shape[1:], dtype=int)).reshape(self._shape[1:], order="F")[tuple(others)]
        taken = slice(columns, columns + 1) if isinstance(columns, int) else columns
        frames, places = np.divmod(np.ravel(rows, "F"), reader.image.rows)
        cuts = [0, *(np.flatnonzero(np.diff(frames)) + 1), frames.size]
        parts = [reader[frames[i], places[i:j], taken] for i, j in zip(cuts, cuts[1:]) if i < j] or [reader[0, :0, taken]]
        values = np.ascontiguousarray(np.concatenate(parts)).view(self._dtype.newbyteorder("="))  # three components are one colour
        block = values.reshape(*rows.shape[::-1], values.shape[1]).T.astype(self._dtype, copy=False)
        block = block[0] if isinstance(columns, int) else block
        return block[tuple(part if part is None else slice(None) for part in key if not isinstance(part, int))]


def _read_plain(reader: tessera.Reader) -> bytes:
    """The header of NIfTI; where there is none because the file is stored, all of the file."""
    if not reader.info.verbatim:
        return reader.header.bytes
    data = reader.original()
    return gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data


class _Tessera:
    """What finds and writes files. Images that were read are nibabel's own: of a class that nibabel's functions know."""

    valid_exts = (".tsr",)
    files_types = (("image", ".tsr"),)

    @classmethod
    def path_maybe_image(cls: Any, filename: Any, sniff: Any = None, sniff_max: int = 1024) -> tuple[bool, Any]:
        if not str(filename).lower().endswith(".tsr"):
            return False, sniff
        with tessera.open(filename) as reader:
            return not reader.is_series and cls.header_class.may_contain_header(_read_plain(reader)), sniff

    @classmethod
    def from_filename(cls: Any, filename: Any, **_options: Any) -> Any:
        reader, kind = tessera.open(filename), cls.plain
        if reader.info.verbatim:
            return kind.from_bytes(_read_plain(reader))
        header = kind.header_class.from_fileobj(io.BytesIO(reader.header.bytes))
        image = kind(_Proxy(reader, header.copy()), None, header)
        image._affine = header.get_best_affine()  # as nibabel does, so that the header stays as it is
        return image

    def to_file_map(self: Any, file_map: Any = None, **options: Any) -> None:
        if file_map is not None:  # of to_bytes
            super().to_file_map(file_map, **options)  # type: ignore[misc]
        else:
            # The name first: to_bytes changes file_map.
            tessera.compress_file(out=self.file_map["image"].filename, data=self.to_bytes(**options), overwrite=True)


class _Nifti1(_Tessera, nibabel.Nifti1Image):
    plain = nibabel.Nifti1Image


class _Nifti2(_Tessera, nibabel.Nifti2Image):
    plain = nibabel.Nifti2Image


def register() -> None:
    """Makes ``nibabel.load`` and ``nibabel.save`` take files of NIfTI that end in ``.tsr``.

    An image's ``dataobj`` and ``slicer`` decode those frames alone that an index touches. A file that is stored, such
    as one of complex values, is restored as a whole.
    """
    all_image_classes.extend(kind for kind in (_Nifti1, _Nifti2) if kind not in all_image_classes)
