"""Orthanc as the tests start it, and DICOM files that differ in their SOP Instance UID alone."""

import concurrent.futures
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import time
from pathlib import Path

DICOM_WEB = "/usr/share/orthanc/plugins/libOrthancDicomWeb.so"


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Failed(Exception):
    """A check failed: its sentence."""


def check(good, sentence):
    if not good:
        raise Failed(sentence)


class Orthanc:
    """A server of its own: folder has its configuration, log, index and store."""

    def __init__(self, folder, plugin=None, tessera=None, dicom_web=False, prefix=(), **more):
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.store = Path(more.pop("StorageDirectory", self.folder / "store"))
        self.log = self.folder / "log"
        self.prefix = list(prefix)
        plugins = ([str(plugin)] if plugin else []) + ([DICOM_WEB] if dicom_web and Path(DICOM_WEB).exists() else [])
        self.configuration = {
            "Name": "test", "StorageDirectory": str(self.store), "IndexDirectory": str(self.folder / "index"),
            "Plugins": plugins, "RemoteAccessAllowed": False, "AuthenticationEnabled": False, "DicomAet": "ORTHANC",
            "DicomAlwaysAllowStore": True, "MaximumStorageCacheSize": 0, "HttpThreadsCount": 20, **more}
        if tessera is not None:
            self.configuration["Tessera"] = tessera
        self.process = None

    def begin(self):
        self.http, self.dicom = free_port(), free_port()
        self.configuration.update(HttpPort=self.http, DicomPort=self.dicom)
        place = self.folder / "orthanc.json"
        place.write_text(json.dumps(self.configuration))
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen([*self.prefix, "Orthanc", str(place)], stdout=log, stderr=log)

    def start(self):
        for _ in range(5):
            self.begin()
            while self.process.poll() is None:
                try:
                    if self.get("/system")[0] == 200:
                        return self
                except OSError:
                    time.sleep(0.05)
            if b"already in use" not in self.log.read_bytes():  # by a program that took the port meanwhile
                break
        raise Failed(f"Orthanc does not start: {self.last_words()}")

    def last_words(self):
        return self.log.read_text(errors="replace")[-600:]

    def ask(self, method, path, body=None, headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.http, timeout=120)
        try:
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            return answer.status, answer.read()
        except http.client.HTTPException as error:
            raise OSError(str(error)) from error
        finally:
            connection.close()

    def get(self, path):
        return self.ask("GET", path)

    def send(self, data):
        status, answer = self.ask("POST", "/instances", data)
        return status, json.loads(answer)["ID"] if status == 200 else None

    def send_all(self, files, clients=1):
        """Sends them, so many at once; {ID: data} of those that are taken. Files that Orthanc refuses as no DICOM are left out."""
        taken = {}
        with concurrent.futures.ThreadPoolExecutor(clients) as pool:
            for data, (status, instance) in zip(files, pool.map(self.send, files)):
                if status == 200:
                    taken[instance] = data
        return taken

    def ids(self):
        return json.loads(self.get("/instances")[1])

    def verify(self, ids, clients=4):
        """All of them are read, and have the MD5 that Orthanc took before it stored them."""
        def one(instance):
            status, data = self.ask("POST", f"/instances/{instance}/attachments/dicom/verify-md5", b"")
            return None if status == 200 and data.strip() == b"{}" else f"{instance}: {status}"
        with concurrent.futures.ThreadPoolExecutor(clients) as pool:
            wrong = [one for one in pool.map(one, ids) if one]
        check(not wrong, f"{len(wrong)} of {len(ids)} files are not what was stored: {wrong[:3]}")

    def files(self):
        """Those of the storage area: {name: bytes}. Through /proc, as it may have a mount of its own."""
        root = self.store
        if self.process and self.prefix:
            root = Path(f"/proc/{self.process.pid}/root{self.store}")
        return {str(file.relative_to(root)): file for file in root.glob("??/??/*") if file.is_file()}

    def metrics(self):
        lines = self.get("/tools/metrics-prometheus")[1].decode().splitlines()
        return {line.split()[0]: float(line.split()[1]) for line in lines if line.startswith("tessera_")}

    def cpu_s(self):
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self, how=signal.SIGTERM):
        if self.process and self.process.poll() is None:
            self.process.send_signal(how)
            self.process.wait(60)
        self.process = None

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop(signal.SIGKILL if self.process and self.process.poll() is None and _[0] else signal.SIGTERM)


UID = re.compile(rb"\x08\x00\x18\x00(?:UI(..)|(..)\x00\x00)([0-9.]+)", re.DOTALL)


def make_files(folders, count, most_bytes, takes):
    """So many DICOM files, made of those in the folders that are taken: each has a SOP Instance UID of its own, in the same number of bytes."""
    originals = []
    for folder in folders:
        for path in sorted(Path(folder).rglob("*.dcm")):
            data = path.read_bytes()
            found = UID.search(data)
            if len(data) > most_bytes or data[128:132] != b"DICM" or not found:
                continue
            uid = found[3]
            if len(uid) >= 16 and data.count(uid) >= 2 and b"\x02\x00\x00\x00UL" in data[:200] and takes(data):
                originals.append((data, uid))
    files = []
    while originals and len(files) < count:
        data, uid = originals[len(files) % len(originals)]
        number = str(len(files) + 1).encode()
        files.append(data.replace(uid, b"2.25." + number.rjust(len(uid) - 5, b"1")))
    return files
