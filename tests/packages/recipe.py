"""recipe.py: rattler-build's own parser (PyPI: py-rattler-build) reads and renders app/packages/recipe/recipe.yaml, and refuses
planted faults. Exit status 77: the parser is not there. Nothing is built: that takes channels of packages."""

import re
import sys
from pathlib import Path

try:
    from rattler_build import Stage0Recipe, VariantConfig
except ImportError:
    print("skipped: py-rattler-build is missing (python3 -m pip install py-rattler-build)")
    sys.exit(77)

ROOT = Path(__file__).resolve().parents[2]
#: What conda-forge's own configuration adds to each recipe.
VARIANT = 'c_stdlib: ["sysroot"]\nc_stdlib_version: ["2.28"]\n'
#: Changes of the recipe that its schema does not allow.
FAULTS = [
    ("a key that is unknown", "about:\n", "abuot:\n"),
    ("no name", "  name: tessera\n", ""),
    ("a version that is unknown", "${{ version }}", "${{ versoin }}"),
    ("a number that is none", "  number: 0\n", "  number: first\n"),
    ("a licence that SPDX lacks", "  license: MIT\n", "  license: MITT\n"),
]


def render(text: str) -> list:
    return Stage0Recipe.from_yaml(text).render(VariantConfig.from_yaml(VARIANT))


def main() -> None:
    text = (ROOT / "app/packages/recipe/recipe.yaml").read_text()
    version = re.search(r'TSR_VERSION_STRING "(.*)"', (ROOT / "app/tessera.h").read_text())[1]
    (rendered,) = render(text)
    package = rendered.recipe.package
    if (str(package.name), str(package.version)) != ("tessera", version):
        sys.exit(f"FAIL the recipe is of {package.name} {package.version}")
    for name, old, new in FAULTS:
        if old not in text:
            sys.exit(f"FAIL {name}: the recipe has no {old!r}")
        try:
            render(text.replace(old, new))
        except Exception as refused:  # noqa: BLE001 the parser's own kinds
            print(f"seen: {name}: {str(refused).splitlines()[0][:100]}")
            continue
        sys.exit(f"FAIL not seen: {name}")
    print(f"the recipe of {package.name} {package.version} is read and rendered")


main()
