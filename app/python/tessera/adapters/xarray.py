"""The engine `tessera` of xarray, which xarray finds by its entry point: values are decoded as they are asked for."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import xarray
from xarray.backends import BackendArray, BackendEntrypoint
from xarray.core import indexing

import tessera

__all__ = ["TesseraBackend"]

_AXES = ("frame", "y", "x", "component")


class _Values(BackendArray):
    def __init__(self, member: tessera.Member) -> None:
        self.member, self.shape, self.dtype = member, member.image.shape, member.dtype

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        return indexing.explicit_indexing_adapter(key, self.shape, indexing.IndexingSupport.OUTER_1VECTOR, self._take)

    def _take(self, key: tuple[Any, ...]) -> Any:
        """Of an integer beside a list numpy makes a list; xarray wants one axis less."""
        is_one = [isinstance(part, (int, np.integer)) for part in key]
        block = self.member._take(tuple(slice(part, part + 1) if one else part for part, one in zip(key, is_one)))
        return block[tuple(0 if one else slice(None) for one in is_one)]


class TesseraBackend(BackendEntrypoint):
    """``xarray.open_dataset(path, engine="tessera")``.

    The data set has the variable `image` with the axes frame, y, x and, where there are several, component. With
    ``chunks={}`` it is one of Dask, a chunk a tile.
    """

    description = "Images that Tessera reads: .tsr, DICOM, NIfTI, PNG, PNM, Y4M"
    open_dataset_parameters = ("filename_or_obj", "drop_variables", "member")

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        """Whether a name ends in .tsr (xarray calls this).

        Parameters
        ----------
        filename_or_obj : object
            What `xarray.open_dataset` was given.

        Returns
        -------
        bool
            False for all that is no path or URL.
        """
        return isinstance(filename_or_obj, (str, os.PathLike)) and os.fspath(filename_or_obj).endswith(".tsr")

    def open_dataset(self, filename_or_obj: Any, *, drop_variables: Any = None, member: str | int = 0) -> xarray.Dataset:
        """Opens a file (xarray calls this).

        Parameters
        ----------
        filename_or_obj : path, URL, bytes or file object
            What `tessera.open` takes.
        drop_variables : str or iterable of str, optional
            ``"image"`` leaves nothing but the attributes.
        member : str or int
            Of a series, the name or number of a file.

        Returns
        -------
        xarray.Dataset
            Its attributes are `kind`, and `bits_stored` of a sample.

        Raises
        ------
        TesseraError
            If there is no image that can be read.
        """
        reader = tessera.open(filename_or_obj)
        chosen = reader[member] if isinstance(member, str) else reader.members[member]
        axes = _AXES[: len(chosen.image.shape)]
        values = indexing.LazilyIndexedArray(_Values(chosen))
        tile = {"preferred_chunks": dict(zip(axes, (1, *chosen.chunks[-len(axes) + 1 :])))}
        dropped = [drop_variables] if isinstance(drop_variables, str) else drop_variables or ()
        variables = {} if "image" in dropped else {"image": xarray.Variable(axes, values, encoding=tile)}
        dataset = xarray.Dataset(variables, attrs={"kind": chosen.info.kind, "bits_stored": chosen.image.bits_stored})
        dataset.set_close(reader.close)
        return dataset
