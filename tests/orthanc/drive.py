"""drive.py PLUGIN PROGRAM WORK DATA... [--quick] [--only NAME]: Orthanc's plugin with the real Orthanc.

DATA: folders of DICOM files. --quick: 50 files instead of 500, and no table. Each check has a folder in WORK, which is removed when
the check passes. Exit status 1: a check failed.
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from server import DICOM_WEB, Failed, Orthanc, check, make_files

TESSERA = {"Effort": 3, "Engine": "cpu", "Memory": "1G", "Threads": 2}


class Driver:
    def __init__(self, options):
        self.options = options
        self.count = 50 if options.quick else 500
        self.work = Path(options.work).resolve()
        with self.server("originals", plugin=False) as orthanc:  # which has no reader of some, and says so
            self.files = make_files(options.data, self.count, (1 << 20) if options.quick else (8 << 20), lambda data: self.is_taken(orthanc, data))
        shutil.rmtree(orthanc.folder)
        check(len(self.files) == self.count, "DATA has no DICOM files that can be used")

    @staticmethod
    def is_taken(orthanc, data):
        """Whether Orthanc takes the file, and shows the same picture of it twice: of some it does not."""
        status, instance = orthanc.send(data)
        previews = [orthanc.get(f"/instances/{instance}/preview") for _ in range(3 if status == 200 else 0)]
        return status == 200 and previews[0][0] == 200 and previews[0] == previews[1] == previews[2]

    def server(self, name, plugin=True, tessera=TESSERA, **more):
        return Orthanc(self.work / name, self.options.plugin if plugin else None, tessera if plugin else None, **more)

    def store_sh(self, form, orthanc):
        done = subprocess.run(["sh", self.options.store_sh, form, orthanc.store], capture_output=True, text=True,
                              env={**os.environ, "TESSERA": str(Path(self.options.program).resolve())}, check=False)
        check(done.returncode == 0, f"store.sh {form}: {done.stdout}{done.stderr}")

    # ---- What clients see: the same as without the plugin

    def storescu(self, orthanc, files):
        """Sends the files that are not compressed, whose transfer syntaxes storescu proposes. Returns the others."""
        native = [data for data in files if re.search(rb"1\.2\.840\.10008\.1\.2(\.1)?\x00?\x02\x00\x12", data[:600])]
        folder = orthanc.folder / "send"
        folder.mkdir()
        for number, data in enumerate(native):
            (folder / f"{number}.dcm").write_bytes(data)
        done = subprocess.run(["storescu", "-R", "-aec", "ORTHANC", "127.0.0.1", str(orthanc.dicom), "+sd", str(folder)],
                              capture_output=True, text=True, check=False)
        shutil.rmtree(folder)
        check(done.returncode == 0, f"storescu: {done.stderr[-300:]}")
        return [data for data in files if data not in native]

    def seen(self, orthanc):
        """What clients get of each instance, as hashes."""
        paths = ["file", "preview", "simplified-tags", "frames/0/raw", "header"]

        def one(instance):
            answers = [orthanc.get(f"/instances/{instance}/{path}") for path in paths]
            return instance, [(path, status, hashlib.md5(data).hexdigest() if status == 200 else "")
                              for path, (status, data) in zip(paths, answers)]
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            return dict(pool.map(one, orthanc.ids()))

    @staticmethod
    def same(one, other, sentence):
        differ = [(i, a, b) for i in one for a, b in zip(one[i], other.get(i, [])) if a != b]
        check(one.keys() == other.keys() and not differ, f"{sentence}: {differ[:3]}")

    def web(self, orthanc):
        """What DICOMweb says: metadata, and the bytes of instances and frames."""
        status, found = orthanc.get("/dicom-web/instances")
        check(status == 200, f"QIDO-RS: {status}")
        answers = {}
        uids = sorted(tuple(one[tag]["Value"][0] for tag in ("0020000D", "0020000E", "00080018")) for one in json.loads(found))
        for study, series, uid in uids[::1 + len(uids) // 40]:
            base = f"/dicom-web/studies/{study}/series/{series}/instances/{uid}"
            for path in (f"{base}/metadata", base, f"{base}/frames/1",
                         f"/wado?requestType=WADO&studyUID={study}&seriesUID={series}&objectUID={uid}&contentType=application/dicom"):
                status, data = orthanc.get(path)
                boundary = re.match(rb"--([^\r]+)\r\n", data)
                if boundary:
                    data = data.replace(boundary[1], b"")
                data = data.replace(f":{orthanc.http}/".encode(), b"")  # in URLs: its digits alone may stand in a UID
                answers[path] = (status, hashlib.md5(data).hexdigest() if status == 200 else "")
        check(any(status == 200 for status, _ in answers.values()), "no answer of DICOMweb is good")
        return answers

    def check_clients(self):
        half = self.count // 2
        seen, web = [], []
        for plugin in (False, True):
            orthanc = self.server(f"clients_{int(plugin)}", plugin, dicom_web=True)
            with orthanc:
                others = self.storescu(orthanc, self.files[:half])
                check(len(others) < half // 2, f"of {half} files, {len(others)} are compressed")
                taken = orthanc.send_all(others + self.files[half:], clients=4)
                check(len(orthanc.ids()) == self.count, f"of {self.count} files, {len(orthanc.ids())} are taken")
                for instance, data in taken.items():
                    status, got = orthanc.get(f"/instances/{instance}/file")
                    check(status == 200 and got == data, f"{instance} comes back changed ({status})")
                if plugin:
                    orthanc.verify(orthanc.ids())
                    counted = orthanc.metrics()
                    check(counted["tessera_files_coded"] + counted["tessera_files_stored"] +
                          counted["tessera_files_kept_as_they_are"] == len(orthanc.files()), f"metrics: {counted}")
                    check(counted["tessera_files_coded"] > 0.9 * len(orthanc.files()), f"files are not coded: {counted}")
                seen.append(self.seen(orthanc))
                web.append(self.web(orthanc) if Path(DICOM_WEB).exists() else None)
            if plugin:  # cold: another process, and nothing in the cache of pages
                for file in orthanc.files().values():
                    with open(file, "rb") as open_file:
                        os.posix_fadvise(open_file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
                with orthanc:
                    self.same(seen[1], self.seen(orthanc), "after a restart, clients see something else")
                    orthanc.verify(orthanc.ids())
        self.same(seen[0], seen[1], "with the plugin, clients see something else")
        differ = [path for path in web[0] or {} if web[0][path] != web[1].get(path)]
        check(not differ, f"with the plugin, DICOMweb says something else: {differ[:3]}")
        previews = sum(part[0] == "preview" and part[1] == 200 for parts in seen[1].values() for part in parts)
        check(previews > len(seen[1]) // 2, f"{previews} previews")
        return f"{len(seen[1])} instances, {previews} previews, {len(web[1] or {})} answers of DICOMweb" + \
            ("" if web[1] else " (skipped: no orthanc-dicomweb)")

    # ---- What breaks

    def check_start(self):
        for tessera, more, word in (({"Efort": 3}, {}, "Efort"), ({"Memory": 7}, {}, "512M"),
                                    (TESSERA, {"StorageCompression": True}, "StorageCompression")):
            orthanc = self.server("start", True, tessera, **more)
            orthanc.begin()
            try:
                check(orthanc.process.wait(60) != 0, f"Orthanc starts with {tessera} {more}")
            except subprocess.TimeoutExpired:
                orthanc.stop(signal.SIGKILL)
                raise Failed(f"Orthanc starts with {tessera} {more}") from None
            check(word in orthanc.last_words(), f"the log does not say {word}: {orthanc.last_words()}")
        return "three wrong configurations stop the start"

    def check_kill(self):
        rounds, taken, lock = (3 if self.options.quick else 12), {}, threading.Lock()
        orthanc, files = self.server("kill"), iter(self.files)
        kills = random.Random(7)

        def client():
            while True:
                with lock:
                    data = next(files, None)
                try:
                    status, instance = orthanc.send(data) if data else (0, None)
                except OSError:  # killed
                    return
                if status != 200 and data is None:
                    return
                if status == 200:
                    with lock:
                        taken[instance] = hashlib.md5(data).hexdigest()
        for _ in range(rounds):
            orthanc.start()
            clients = [threading.Thread(target=client) for _ in range(4)]
            for one in clients:
                one.start()
            goal = len(taken) + kills.randrange(1, max(2, self.count // rounds - 4))
            while len(taken) < goal and any(one.is_alive() for one in clients):
                time.sleep(0.002)
            orthanc.stop(signal.SIGKILL)
            for one in clients:
                one.join()
        with orthanc:
            ids = orthanc.ids()
            lost = [instance for instance in taken if instance not in ids]
            check(not lost, f"{len(lost)} files were taken, and are not there")
            orthanc.verify(ids)
            for instance, md5 in taken.items():
                check(hashlib.md5(orthanc.get(f"/instances/{instance}/file")[1]).hexdigest() == md5, f"{instance} is another file")
            files = orthanc.files()
            parts = [name for name in files if "part" in name]
            return f"{rounds} kills, {len(taken)} files taken and right; {len(files) - len(ids) - len(parts)} that no index knows, {len(parts)} parts left"

    def check_full(self):
        mounts = subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True, check=False)
        if mounts.returncode != 0:
            return "skipped: mounting is not allowed here"
        store = self.work / "full" / "store"
        store.mkdir(parents=True)
        size = sum(map(len, self.files)) // 10240
        orthanc = self.server("full", prefix=["unshare", "-m", "sh", "-c", f"mount -t tmpfs -o size={size}k none {store} && exec \"$@\"", "sh"])
        with orthanc:
            taken, refused = {}, 0
            for data in self.files:
                status, instance = orthanc.send(data)
                if status == 200:
                    taken[instance] = True
                else:
                    refused += 1
                    if refused == 5:
                        break
            check(refused == 5, f"{len(taken)} files fit on a disk of {size} KB")
            check("No space left" in orthanc.log.read_text(), "the log does not say that the disk is full")
            before = orthanc.ids()
            orthanc.verify(before)
            check(not [name for name in orthanc.files() if "part" in name], "parts are left")
            check(len(orthanc.files()) == len(before), f"{len(orthanc.files())} files of {len(before)} instances")
            for instance in before:
                check(orthanc.ask("DELETE", f"/instances/{instance}")[0] == 200, "nothing can be removed")
            again = orthanc.send_all(self.files[:5])
            check(again, "when there is room again, nothing is taken")
            orthanc.verify(orthanc.ids())
        return f"{len(before)} files on {size} KB, then {refused} refused; after a removal they are taken"

    def check_damage(self):
        some = self.files[:20]
        with self.server("damage") as orthanc:
            taken = orthanc.send_all(some)
            errors = 0
            for name, file in sorted(orthanc.files().items()):
                data = bytearray(file.read_bytes())
                check(name.endswith(".tsr"), f"{name} is no .tsr")
                for at in range(len(data) * 2 // 5, len(data) * 3 // 5, 16):
                    data[at] ^= 0x55
                file.write_bytes(data)
            for instance, data in taken.items():
                status, got = orthanc.get(f"/instances/{instance}/file")
                check(status != 200 or got == data, f"{instance}: wrong bytes of a damaged file")
                errors += status != 200
                for path in ("preview", "frames/0/raw"):
                    status, _ = orthanc.get(f"/instances/{instance}/{path}")
                    check(status != 200, f"{instance}: {path} of a damaged file")
            check(errors == len(taken), f"{errors} errors of {len(taken)} damaged files")
            check("cannot read" in orthanc.log.read_text(), "the log says nothing of damage")
            check(orthanc.metrics()["tessera_reads_damaged"] >= errors, "damage is not counted")
        return f"{errors} damaged files: an error each, and no pixels"

    # ---- Stores with and without the plugin

    def check_before(self):
        with self.server("before", plugin=False) as orthanc:
            old = orthanc.send_all(self.files[:10])
        with self.server("before") as orthanc:
            orthanc.verify(orthanc.ids())
            new = orthanc.send_all(self.files[10:20])
            orthanc.verify(orthanc.ids())
            forms = [name.endswith(".tsr") for name in orthanc.files()]
            check(sum(forms) == len(new) and len(forms) == len(old) + len(new), f"forms: {forms}")
            for instance in orthanc.ids():
                check(orthanc.ask("DELETE", f"/instances/{instance}")[0] == 200, "cannot be removed")
            check(not orthanc.files(), f"removed files stay: {list(orthanc.files())[:3]}")
        return f"{len(old)} files from before are read; with {len(new)} new ones all are removed"

    def check_back(self):
        with self.server("back") as orthanc:
            taken = orthanc.send_all(self.files[:self.count // 2])
        self.store_sh("plain", orthanc)
        check(not [name for name in orthanc.files() if name.endswith(".tsr")], "a .tsr stays")
        plain = sum(file.stat().st_size for file in orthanc.files().values())
        with self.server("back", plugin=False) as orthanc:
            orthanc.verify(orthanc.ids())
            for instance, data in taken.items():
                check(orthanc.get(f"/instances/{instance}/file")[1] == data, f"{instance} is another file without the plugin")
        self.store_sh("tsr", orthanc)
        tsr = sum(file.stat().st_size for file in orthanc.files().values())
        check(all(name.endswith(".tsr") for name in orthanc.files()) and tsr < plain, f"store.sh tsr: {tsr} of {plain} bytes")
        with self.server("back") as orthanc:
            orthanc.verify(orthanc.ids())
            check(len(orthanc.ids()) == len(taken), "instances are lost")
        return f"{len(taken)} files: {tsr} bytes as .tsr, {plain} plain; read without the plugin, and with it again"

    # ---- The table

    def check_table(self):
        if self.options.quick:
            return "skipped: --quick"
        modes = [("no compression", False, None, {}), ("StorageCompression", False, None, {"StorageCompression": True})]
        modes += [(f"the plugin, effort {effort}", True, {**TESSERA, "Effort": effort}, {}) for effort in (1, 3, 5, 7)]
        lines = ["| store | MB | x | CPU ms a store | ms a store: median, 95 % | CPU ms a read | ms a read: median, 95 % | CPU ms a header | ms a header: median |",
                 "|---|---|---|---|---|---|---|---|---|"]
        files = [data for data in self.files if len(data) > 20000]

        def timed(calls):
            cpu, times = orthanc.cpu_s(), []
            for one in calls:
                began = time.perf_counter()
                check(one()[0] == 200, "an answer is no success")
                times.append(1e3 * (time.perf_counter() - began))
            times.sort()
            return 1e3 * (orthanc.cpu_s() - cpu) / len(times), times[len(times) // 2], times[len(times) * 95 // 100]
        first = None
        for name, plugin, tessera, more in modes:
            with self.server("table", plugin, tessera, **more) as orthanc:
                taken = set()
                good = [data for data in files if orthanc.send(data)[0] == 200] if first is None else good
            shutil.rmtree(self.work / "table")
            with self.server("table", plugin, tessera, **more) as orthanc:
                stores = timed([lambda data=data: orthanc.send(data) for data in good])
                ids = orthanc.ids()
                reads = timed([lambda i=i: orthanc.get(f"/instances/{i}/file") for i in ids])
                headers = timed([lambda i=i: orthanc.get(f"/instances/{i}/tags") for i in ids])
                size = sum(file.stat().st_size for file in orthanc.files().values()) / 1e6
            shutil.rmtree(self.work / "table")
            first = first or size
            lines.append(f"| {name} | {size:.1f} | {size / first:.3f} | {stores[0]:.1f} | {stores[1]:.1f}, {stores[2]:.1f} | {reads[0]:.1f} | "
                         f"{reads[1]:.1f}, {reads[2]:.1f} | {headers[0]:.1f} | {headers[1]:.1f} |")
        return f"{len(good)} files\n" + "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("plugin", "program", "work"):
        parser.add_argument(name)
    parser.add_argument("data", nargs="+")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", action="append")
    parser.add_argument("--store-sh", default=Path(__file__).resolve().parents[2] / "app" / "orthanc" / "store.sh")
    options = parser.parse_args()
    options.plugin = Path(options.plugin).resolve()
    driver = Driver(options)
    failed = 0
    for name in ("start", "clients", "kill", "full", "damage", "before", "back", "table"):
        if options.only and name not in options.only:
            continue
        began = time.monotonic()
        try:
            for folder in driver.work.glob(f"{name}*"):
                shutil.rmtree(folder)
            said = getattr(driver, f"check_{name}")()
            for folder in driver.work.glob(f"{name}*"):
                shutil.rmtree(folder)
        except Failed as error:
            said, failed = f"FAILED: {error}", 1
        print(f"{name} ({time.monotonic() - began:.1f} s): {said}", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
