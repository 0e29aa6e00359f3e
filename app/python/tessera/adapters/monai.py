"""A reader for MONAI's LoadImage. What it makes of NIfTI and DICOM is what MONAI's own readers make of the originals."""

from __future__ import annotations

from typing import Any

import numpy as np
from monai.data import ImageReader, NibabelReader, NumpyReader, PydicomReader, is_supported_format

import tessera

from .nibabel import register

__all__ = ["TesseraReader"]


def _transpose(reader: tessera.Reader) -> Any:
    """Columns, rows and, where there are several, frames and components."""
    values = np.asarray(reader).reshape(reader.image.shape).swapaxes(0, 2)
    return values[:, :, 0] if reader.frames == 1 else values


class TesseraReader(ImageReader):
    """``LoadImage(reader=TesseraReader())`` reads files that end in .tsr.

    NIfTI is read as by NibabelReader, DICOM and a series of its slices as by PydicomReader. Of all other images the
    axes are those of NIfTI: columns, rows, frames; and their affine is not known.

    Parameters
    ----------
    **options
        What MONAI's reader of that kind takes.
    """

    def __init__(self, **options: Any) -> None:
        self._options = options
        self._reader: Any = None

    def verify_suffix(self, filename: Any) -> bool:
        """Whether all names end in .tsr (MONAI calls this).

        Parameters
        ----------
        filename : path or sequence of paths
            What LoadImage was given.

        Returns
        -------
        bool
            True if this reader takes them.
        """
        return bool(is_supported_format(filename, ["tsr"]))

    def read(self, data: Any, **_options: Any) -> Any:
        """Opens files (MONAI calls this).

        Parameters
        ----------
        data : path or sequence of paths
            Files of the same kind.

        Returns
        -------
        object
            What `get_data` takes.

        Raises
        ------
        TesseraError
            If a file is damaged, or has no image that can be read.
        """
        paths = [data] if isinstance(data, (str, bytes)) or hasattr(data, "__fspath__") else list(data)
        readers = [tessera.open(path) for path in paths]
        kind = readers[0].members[0].info.kind
        if kind == "nifti":
            register()
            self._reader = NibabelReader(**self._options)
            return self._reader.read(data)
        if kind == "dicom":
            self._reader = PydicomReader(**self._options)
            self._reader.has_series = any(reader.is_series for reader in readers)
            found = [[one.to_pydicom() for one in reader.members] if reader.is_series else reader.to_pydicom()
                     for reader in readers]
            self._reader.filenames = [[path] * len(one) if isinstance(one, list) else path for path, one in zip(paths, found)]
        else:
            self._reader = NumpyReader(**self._options)
            found = [_transpose(reader) for reader in readers]
        return found if len(found) > 1 else found[0]

    def get_data(self, img: Any) -> tuple[Any, dict[Any, Any]]:
        """Values and metadata (MONAI calls this).

        Parameters
        ----------
        img : object
            What `read` returned.

        Returns
        -------
        tuple of ndarray and dict
            As MONAI's reader of that kind.
        """
        values, metadata = self._reader.get_data(img)
        return values, metadata
