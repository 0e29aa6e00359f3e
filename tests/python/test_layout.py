"""The structures and constants of _native.py are those of app/tessera.h, as the C compiler lays them out."""

import ctypes
import re
import subprocess

from data import COMPILER, ROOT, Case
from tessera import Status, _native

CONSTANTS = {
    "TSR_NO_OFFSET": _native.NO_OFFSET,
    "TSR_ALL_MEMBERS": _native.ALL_MEMBERS,
    "TSR_MEDIUM_PATH": _native.MEDIUM_PATH,
    "TSR_MEDIUM_MEMORY": _native.MEDIUM_MEMORY,
    "TSR_MEDIUM_DESCRIPTOR": _native.MEDIUM_DESCRIPTOR,
    "TSR_MEDIUM_CALLS": _native.MEDIUM_CALLS,
    "TSR_TASK_COMPRESS": _native.TASK_COMPRESS,
    "TSR_CONTENT_ORIGINAL": _native.CONTENT_ORIGINAL,
    "TSR_CONTENT_TSR": _native.CONTENT_TSR,
    "TSR_CONTENT_SERIES": _native.CONTENT_SERIES,
    "TSR_PATH_PREDICT": _native.PATHS.index("predict"),
    "TSR_PATH_TRANSFORM": _native.PATHS.index("transform"),
    "TSR_CODER_BY_EFFORT": _native.CODERS.index("by-effort"),
    "TSR_CODER_HUFFMAN": _native.CODERS.index("huffman"),
    "TSR_CODER_CAVLC": _native.CODERS.index("cavlc"),
    "TSR_CODER_RANS": _native.CODERS.index("rans"),
    "TSR_ENGINE_AUTO": _native.ENGINES.index("auto"),
    "TSR_ENGINE_CPU": _native.ENGINES.index("cpu"),
    "TSR_ENGINE_CUDA": _native.ENGINES.index("cuda"),
    "TSR_VERIFY_CPU": _native.VERIFY.index("cpu"),
    "TSR_VERIFY_NONE": _native.VERIFY.index("none"),
    "TSR_VERIFY_ENGINE": _native.VERIFY.index("engine"),
    "TSR_PROMISE_FILE": _native.PROMISE_FILE,
    "TSR_PROMISE_SAMPLES": _native.PROMISE_SAMPLES,
    "TSR_PROMISE_LOSSY": _native.PROMISE_LOSSY,
    "TSR_LOSSLESS": _native.LOSSLESS,
    "TSR_LOSS_QP": _native.LOSS_QP,
    "TSR_LOSS_MAX_ERROR": _native.LOSS_MAX_ERROR,
    "TSR_LOSS_PSNR": _native.LOSS_PSNR,
    "TSR_LOSS_BYTES": _native.LOSS_BYTES,
    "TSR_LOSS_RATIO": _native.LOSS_RATIO,
    "TSR_LOSS_QUALITY": _native.LOSS_QUALITY,
    "TSR_LOSS_SSIM": _native.LOSS_SSIM,
}
CONSTANTS.update({f"TSR_{'' if s == Status.OK else 'ERROR_'}{s.name}": s.value for s in Status})

HEADER = (ROOT / "app" / "tessera.h").read_text()


class LayoutTest(Case):
    def ask(self, lines: list[str]) -> dict[str, int]:
        """Values of expressions, as a C program prints them: each line is "name expression"."""
        prints = [f'    printf("{name} %llu\\n", (unsigned long long)({value}));' for name, value in
                  (line.split(" ", 1) for line in lines)]
        source = self.folder / "layout.c"
        source.write_text('#include "tessera.h"\n#include <stdio.h>\nint main(void)\n{\n' + "\n".join(prints) +
                          "\n    return 0;\n}\n")
        program = self.folder / "layout"
        subprocess.run([COMPILER, "-std=c11", "-I", ROOT / "app", source, "-o", program], check=True)
        told = subprocess.run([program], check=True, capture_output=True, text=True).stdout
        return {name: int(value) for name, value in (line.split() for line in told.splitlines())}

    def test_structures(self) -> None:
        lines, expected = [], {}
        for kind in _native.STRUCTURES:
            name = kind.__name__
            lines.append(f"{name} sizeof(struct {name})")
            expected[name] = ctypes.sizeof(kind)
            for field in kind._fields_:
                member = f"{name}.{field[0]}"
                lines.append(f"{member} offsetof(struct {name}, {field[0]})")
                lines.append(f"{member}:size sizeof(((struct {name} *)0)->{field[0]})")
                expected[member] = getattr(kind, field[0]).offset
                expected[member + ":size"] = getattr(kind, field[0]).size
        self.assertEqual(self.ask(lines), expected)

    def test_no_field_is_missing(self) -> None:
        for kind in _native.STRUCTURES:
            body = re.search(rf"^struct {kind.__name__} {{$(.*?)^}};$", HEADER, re.M | re.S)
            self.assertIsNotNone(body, kind.__name__)
            text = re.sub(r"/\*.*?\*/", "", body.group(1), flags=re.S)
            text = re.sub(r"\(\*(\w+)\)\([^;]*\)", r"\1", text)
            names = [re.search(r"(\w+)(\[\w+\])?$", part.strip()).group(1)
                     for line in text.split(";") if line.strip() for part in line.split(",")]
            self.assertEqual(names, [field[0] for field in kind._fields_], kind.__name__)

    def test_constants(self) -> None:
        self.assertEqual(self.ask([f"{name} {name}" for name in CONSTANTS]), CONSTANTS)

    def test_every_status_is_there(self) -> None:
        declared = set(re.findall(r"^    (TSR_OK|TSR_ERROR_\w+) = \d+", HEADER, re.M))
        self.assertEqual(declared, {name for name in CONSTANTS if name == "TSR_OK" or name.startswith("TSR_ERROR_")})

    def test_parameters(self) -> None:
        for name, (_, parameters) in _native.FUNCTIONS.items():
            declared = re.search(rf"^TSR_API [^;]*?\b{name}\((.*?)\);", HEADER, re.M | re.S)
            self.assertIsNotNone(declared, name)
            text = re.sub(r"\(\*(\w+)\)\([^)]*\)", r"\1", declared.group(1))
            count = 0 if text == "void" else len(text.split(","))
            self.assertEqual(len(parameters), count, name)
