"""faults.py BUILD WORK [--real] [-v] [WORD]: the tests of Orthanc's plugin see faults.

Each fault is one change of a copy of app/orthanc, which is compiled anew; the check that is named with it must fail then.
Without --real, fake.c checks; with it, drive.py with the real Orthanc. -v: what the check said. WORD: only faults whose name has it.
Exit status 1: a fault was not seen.
faults.py --check: only that what each fault changes stands there, once.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

#: Name, file, what stands there, what replaces it.
FAULTS = [
    ("an unknown key is taken", "settings.c", "        if (!is_good) return false;", ""),
    ("StorageCompression is taken", "settings.c", '"StorageCompression")))', '"NoCompression")))'),
    ("a relative folder begins elsewhere", "settings.c", 'snprintf(settings->root, SETTINGS_PATH, "%s/%s", base, name)',
     'snprintf(settings->root, SETTINGS_PATH, "%s/x%s", base, name)'),
    ("an id may lead anywhere", "store.c", "if (is_hyphen ? id[i] != '-' : digit(id[i]) < 0) return false;", "if (!id[i]) return false;"),
    ("an id may be longer", "store.c", "if (id[ID_LENGTH]) return false;", ""),
    ("the file is not synced", "store.c", "return fsync(file) == 0 ? 0 : errno;", "return 0;"),
    ("the outer folder is not synced", "store.c", "int reason = sync_folder(outer);", "int reason = 0;"),
    ("the root is not synced", "store.c", "if (reason == 0) reason = sync_folder(store->settings.root);", ""),
    ("a folder that is not synced counts", "store.c", "(reason = sync_descriptor(folder)) != 0", "(sync_descriptor(folder), false)"),
    ("what cannot be coded is refused", "store.c", "if (reason == 0 && !is_tsr) reason = write_plain", "if (reason == 0 && !is_tsr) reason = count > 0 ? ENOMEM : write_plain"),
    ("only its owner reads a file", "store.c", "(void)!chmod(names->tsr, store->mode);", "(void)store;"),
    ("a file larger than the memory is not read", "store.c", "if (status == TSR_ERROR_LIMIT) {", "if (false) {"),
    ("a part stays", "store.c", "if (reason != 0) unlinkat(folder, part, 0);", ""),
    ("a second file of an id is taken", "store.c", "access(names.plain, F_OK) == 0 || access(names.tsr, F_OK) == 0", "false"),
    ("a lossy file is read", "store.c", "if (report.promise != TSR_PROMISE_FILE)", "if (false)"),
    ("a range of a lossy file is read", "store.c", "is_range && is_pieces && info.promise == TSR_PROMISE_FILE", "is_range && is_pieces"),
    ("a range of a series is read", "store.c", "tsr_reader_content(reader) != TSR_CONTENT_TSR", "false"),
    ("files from before are not read", "store.c", "*is_tsr = attempt != 1;", "*is_tsr = true;"),
    ("a range begins at 0", "store.c", "status = tsr_read_original(reader, 0, offset, bytes,", "status = tsr_read_original(reader, 0, 0, bytes,"),
    ("a range ends late", "store.c", "else if (offset > size || count > size - offset)", "else if (offset > size)"),
    ("a range of what is restored begins at 0", "store.c", "memcpy(bytes, buffer.bytes + offset, count);", "memcpy(bytes, buffer.bytes, count);"),
    ("plain files stay", "store.c", "unlink(names.plain) != 0 && errno != ENOENT", "false"),
    (".tsr files stay", "store.c", "unlink(names.tsr) != 0 && errno != ENOENT", "false"),
    ("damage is not counted", "store.c", "status == STORE_DAMAGED ? &store->counts.damaged : &store->counts.failed_reads", "&store->counts.failed_reads"),
    ("files that are refused are not counted", "store.c", "if (status != STORE_OK) atomic_fetch_add(&store->counts.refused, 1);", ""),
    ("the work is done on Orthanc's stack", "plugin.c", "    const double began = now();\n    const enum store_status status = store_create",
     "    volatile char room[200 << 10];\n    room[0] = room[size % 1000] = 0;\n    const double began = now();\n    const enum store_status status = store_create"),
]
#: The same for drive.py: its check comes last.
REAL = [
    ("an unknown key is taken", "settings.c", "        if (!is_good) return false;", "", "start"),
    ("a byte is another one", "store.c", "memcpy(bytes, buffer.bytes, count);\n", "memcpy(bytes, buffer.bytes, count), ((char *)bytes)[count / 2] ^= 1;\n", "clients"),
    ("nothing is coded", "store.c", "reason == 0 && count > 0 && write_tsr", "false && write_tsr", "clients"),
    ("ranges end early", "plugin.c", "target->data, (size_t)target->size, &note)", "target->data, (size_t)target->size / 2, &note)", "clients"),
    ("one store in eight is not done", "store.c", "const bool is_tsr = reason == 0 && count > 0 &&",
     "static atomic_int n;\n    const bool is_tsr = atomic_fetch_add(&n, 1) % 8 == 7 || reason == 0 && count > 0 &&", "kill"),
    ("a full disk is no error", "store.c", "if (reason != 0) return fail_write(note, id, reason);\n\n", "", "full"),
    ("a damaged file gives zeros", "store.c", "if (status != TSR_OK) return fail_library(note, status, id, &error);\n    if (report.promise",
     "if (status != TSR_OK) take(buffer, \"\\0\\0\\0\", 4), report.promise = TSR_PROMISE_FILE;\n    if (report.promise", "damage"),
    ("files from before are not read", "store.c", "*is_tsr = attempt != 1;", "*is_tsr = true;", "before"),
    ("plain files stay", "store.c", "unlink(names.plain) != 0 && errno != ENOENT", "false", "before"),
    ("the way back leaves files", "store.sh", "|| rm -f \"$f\"", "|| :", "back"),
    ("the way there does nothing", "store.sh", '"$tessera" compress -q', ': compress -q', "back"),
]


def text_of(folder, fault):
    """The text of a fault's file, in which what it changes stands once."""
    text = (folder / fault[1]).read_text()
    if text.count(fault[2]) != 1:
        raise SystemExit(f"{fault[0]}: its place stands {text.count(fault[2])} times in {fault[1]}")
    return text


def build(build_folder, work, fault):
    """Compiles the plugin of a copy with the fault; returns its path."""
    copy = work / "app" / "orthanc"
    shutil.rmtree(work / "app", ignore_errors=True)
    shutil.copytree(ROOT / "app" / "orthanc", copy)
    if fault:
        (copy / fault[1]).write_text(text_of(copy, fault).replace(fault[2], fault[3]))
    plugin = work / "libOrthancTessera.so"
    subprocess.run([os.environ.get("CC", "cc"), "-O1", "-w", "-std=c11", "-D_POSIX_C_SOURCE=200809L", "-shared", "-fPIC", "-fvisibility=hidden", f"-I{work}", f"-I{ROOT}",
                    *(str(copy / name) for name in ("plugin.c", "settings.c", "store.c")), "-o", str(plugin), f"-L{build_folder}/lib", "-ltessera", "-lcjson",
                    "-lpthread", f"-Wl,-rpath,{build_folder}/lib"], check=True)
    return plugin


def main():
    if sys.argv[1:] == ["--check"]:
        for fault in FAULTS + REAL:
            text_of(ROOT / "app" / "orthanc", fault)
        print(f"{len(FAULTS + REAL)} faults of Orthanc's plugin stand where the list says")
        return
    words = [word for word in sys.argv[1:] if word not in ("--real", "-v")]
    real = "--real" in sys.argv
    build_folder, work = Path(words[0]).resolve(), Path(words[1])
    work.mkdir(parents=True, exist_ok=True)
    work = work.resolve()
    subprocess.run([build_folder / "bin" / "tessera_testdata", work / "set"], check=True, stdout=subprocess.DEVNULL)
    dicom = work / "set" / "dicom"
    few = [str(dicom / name) for name in ("ct/slice_01.dcm", "mr/small_01.dcm", "forms/rle_16bit.dcm", "forms/deflated.dcm", "forms/jpeg_ls_16bit.dcm")]

    def passes(plugin, fault):
        room = work / "room"
        shutil.rmtree(room, ignore_errors=True)
        room.mkdir()
        if real:
            command = [sys.executable, ROOT / "tests/orthanc/drive.py", plugin, build_folder / "bin/tessera", room, str(dicom / "ct"), str(dicom / "mr"),
                       "--quick", *(["--only", fault[4]] if fault else []), "--store-sh", work / "app/orthanc/store.sh"]
        else:
            command = [build_folder / "bin/orthanc_fake", plugin, room, "check", *few]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)
        except subprocess.TimeoutExpired:
            return False
        if not fault and done.returncode:
            print(done.stdout[-2000:], done.stderr[-2000:])
        if fault and "-v" in sys.argv:
            print(f"{fault[0]}: {next((line for line in done.stdout.splitlines() if 'FAILED' in line), done.stderr[-200:])[:200]}", flush=True)
        return done.returncode == 0

    if not passes(build(build_folder, work, None), None):
        raise SystemExit("without a fault, the tests fail")
    chosen = [fault for fault in (REAL if real else FAULTS) if len(words) < 3 or words[2] in fault[0]]
    unseen = 0
    for fault in chosen:
        if passes(build(build_folder, work, fault), fault):
            print(f"not seen: {fault[0]}", flush=True)
            unseen += 1
    print(f"{len(chosen) - unseen} of {len(chosen)} faults are seen")
    sys.exit(1 if unseen else 0)


if __name__ == "__main__":
    main()
