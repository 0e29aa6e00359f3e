"""What other processes do with a store. This module does not import tessera, and neither does what imports it."""

import hashlib
import os
import sys


def digest(path: str, key: str = "") -> tuple[int, bool, str]:
    """The process, whether it knew tessera before, and the hash of an array's values."""
    import zarr

    known = any(name.split(".")[0] == "tessera" for name in sys.modules)
    values = zarr.open(path, mode="r", path=key)[...]
    return os.getpid(), known, hashlib.sha256(values.tobytes()).hexdigest()


if __name__ == "__main__":
    print(*digest(*sys.argv[1:]))
