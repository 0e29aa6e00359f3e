"""Makes the entry points of pyproject.toml known, as an installed wheel would, before zarr is imported."""

import atexit
import os
import shutil
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(os.environ["TESSERA_TEST_ROOT"])


def install() -> None:
    folder = Path(tempfile.mkdtemp(prefix="tessera-entry-points-"))
    owner = os.getpid()
    atexit.register(lambda: shutil.rmtree(folder) if os.getpid() == owner else None)
    metadata = folder / "tessera_codec-0.dist-info"
    metadata.mkdir()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: 0\n")
    lines = []
    for group, points in project["entry-points"].items():
        lines += [f"[{group}]", *(f"{name} = {value}" for name, value in points.items())]
    (metadata / "entry_points.txt").write_text("\n".join(lines) + "\n")
    sys.path.insert(0, str(folder))
    os.environ["PYTHONPATH"] = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
