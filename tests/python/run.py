"""run.py LIBRARY TESTDATA PROGRAM COMPILER WORK [PATTERN]: the tests of the Python package, from its sources, over a
build's shared library. LIBRARY may be "installed": then the package that this Python has is tested. Makes the synthetic
image set in the folder WORK. Exit status 77: there is no numpy. If TESSERA_ALL_TESTS is set, no test may be skipped."""

import os
import shutil
import subprocess
import sys
import unittest
from pathlib import Path


def main() -> int:
    library, testdata, program, compiler, work = sys.argv[1:6]
    no_skips = bool(os.environ.get("TESSERA_ALL_TESTS"))
    try:
        import numpy
    except ImportError:
        print("skipped: python3 has no numpy")
        return 1 if no_skips else 77
    here = Path(__file__).resolve().parent
    package = Path(os.environ.get("TESSERA_PACKAGE", here.parents[1] / "app" / "python"))
    data = Path(work) / "data"
    shutil.rmtree(data, ignore_errors=True)
    data.mkdir(parents=True)
    subprocess.run([testdata, data], check=True, stdout=subprocess.DEVNULL)
    os.environ.update(TESSERA_TEST_DATA=str(data), TESSERA_TEST_PROGRAM=program, TESSERA_TEST_COMPILER=compiler,
                      TESSERA_TEST_ROOT=str(here.parents[1]))
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(here))
    if library != "installed":
        os.environ.update(TESSERA_LIBRARY=library, PYTHONPATH=str(package))
        sys.path.insert(0, str(package))
    import tessera

    print(f"python {sys.version.split()[0]}, numpy {numpy.__version__}, {Path(tessera.__file__).parent}")
    pattern = sys.argv[6] if len(sys.argv) > 6 else "test_*.py"
    suite = unittest.defaultTestLoader.discover(str(here), pattern)
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=1).run(suite)
    for test, why in result.skipped:
        print(f"skipped: {test}: {why}")
    is_whole = bool(result.testsRun) and not (no_skips and result.skipped)
    return 0 if result.wasSuccessful() and is_whole else 1


if __name__ == "__main__":
    sys.exit(main())
