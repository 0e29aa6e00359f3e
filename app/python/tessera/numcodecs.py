"""The codec `tessera` of Zarr format 2, which numcodecs finds by its entry point. io/ZARR.md says what its bytes are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numcodecs.abc import Codec
from numcodecs.compat import ensure_contiguous_ndarray, ndarray_copy
from numpy.typing import DTypeLike

from . import _chunks
from ._image import Array, refuse_mask

__all__ = ["Tessera"]


class Tessera(Codec):  # type: ignore[misc]
    """The compressor of an array whose chunks have this shape and type.

    Parameters
    ----------
    shape : sequence of int
        The shape of a chunk; of an array of order F, reversed.
    dtype : data type
        The array's.
    effort, max_error, components, depth : int
        As of `tessera.zarr.TesseraCodec`.

    Examples
    --------
    >>> import numpy
    >>> from tessera.numcodecs import Tessera
    >>> chunk = numpy.arange(64 * 64, dtype="<u2").reshape(64, 64)
    >>> codec = Tessera(shape=chunk.shape, dtype=chunk.dtype)
    >>> bool((codec.decode(codec.encode(chunk)) == chunk).all())
    True
    """

    codec_id = "tessera"

    def __init__(
        self,
        *,
        shape: Sequence[int],
        dtype: DTypeLike,
        effort: int = 5,
        max_error: int = 0,
        components: int = 1,
        depth: int = 1,
    ) -> None:
        self._configuration = _chunks.Configuration(effort, max_error, components, depth)
        self.shape = tuple(int(side) for side in shape)
        self.dtype = np.dtype(dtype)
        self._layout = _chunks.Layout(self._configuration, self.shape, self.dtype)

    def get_config(self) -> dict[str, Any]:
        """The codec's object in .zarray.

        Returns
        -------
        dict
            As io/ZARR.md specifies it.
        """
        return {
            "id": self.codec_id,
            **self._configuration.to_dict(),
            "shape": list(self.shape),
            "dtype": self.dtype.str,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Tessera:
        """The codec of an array's metadata.

        Parameters
        ----------
        config : dict
            The codec's object in .zarray (io/ZARR.md).

        Returns
        -------
        Tessera
            The codec.

        Raises
        ------
        ValueError
            If a parameter is missing, unknown or out of its range.
        """
        given = {name: value for name, value in config.items() if name != "id"}
        made = _chunks.Configuration.from_dict(given, ("shape", "dtype"))
        shape = given["shape"]
        if not isinstance(shape, (list, tuple)) or not all(type(side) is int for side in shape):
            raise ValueError(f"the tessera codec's shape is {shape!r}, not a list of integers")
        settings = made.to_dict()
        del settings["version"]
        return cls(shape=shape, dtype=given["dtype"], **settings)

    def __repr__(self) -> str:
        settings = {name: value for name, value in self.get_config().items() if name not in ("id", "version")}
        return f"Tessera({', '.join(f'{name}={value!r}' for name, value in settings.items())})"

    def encode(self, buf: Any) -> bytes:
        """Encodes an array, or its bytes, in the order in which they lie in memory.

        Parameters
        ----------
        buf : buffer
            The bytes of a chunk.

        Returns
        -------
        bytes
            The frame payload.

        Raises
        ------
        TypeError, ValueError
            If the type or the number of bytes is not the chunk's.
        """
        refuse_mask(buf)
        given = ensure_contiguous_ndarray(buf)
        if given.dtype != self.dtype and given.dtype.itemsize > 1:
            raise TypeError(f"the tessera codec has the type {self.dtype}, and was given {given.dtype}")
        data = given.view(np.uint8)
        count = math.prod(self.shape) * self.dtype.itemsize
        if data.size != count:
            raise ValueError(f"the tessera codec's shape {self.shape} has {count} bytes, and was given {data.size}")
        return _chunks.encode(data.view(self.dtype).reshape(self.shape), self._configuration)

    def decode(self, buf: Any, out: Any = None) -> Array:
        """Decodes a chunk.

        Parameters
        ----------
        buf : buffer
            What `encode` returned.
        out : buffer, optional
            Takes the values, and is returned.

        Returns
        -------
        ndarray
            The chunk.

        Raises
        ------
        TesseraError
            With status CORRUPT if the payload is damaged.
        """
        data = ensure_contiguous_ndarray(buf).view(np.uint8)
        chunk = _chunks.decode(data, self._configuration, self.shape, self.dtype)
        if out is None:
            return chunk
        copied: Array = ndarray_copy(chunk, out)
        return copied
