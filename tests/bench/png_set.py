#!/usr/bin/env python3
"""A set of PNGs of many producers, from Debian packages: png_set.py FOLDER [--packages NAME,...] [--files N] [--bytes N]

FOLDER must not exist, or be one that this script made: then packages that are there are not fetched again. Everything is
written inside it: packages/ (by `apt-get download`), unpacked/ (by `dpkg -x`; nothing is installed or run), set/PACKAGE/
(the chosen files), set.tsv (a line a file: package and version, path, bytes, SHA-256, producer and how it was told). None of
it may be committed: the images have licences of their own.

Which files: of each package the PNGs that are no links, each content once, at most 4 MiB; in the order of the SHA-256 of
their path, each that still fits, up to --files and --bytes a package. The order depends on nothing but the paths.
Needs Debian or Ubuntu with current package lists (`apt-get update`)."""
import argparse
import collections
import hashlib
import os
import shutil
import struct
import subprocess
import sys
import zlib

PACKAGES = """
adwaita-icon-theme asc-music blender-data desktop-base doxygen-doc elementary-xfce-icon-theme faenza-icon-theme
filezilla-common freeciv-data frozen-bubble-data gcompris-qt-data gimp-help-en gnome-icon-theme gnome-user-docs
gnubg-data gnuplot-doc graphviz-doc hugin-data humanity-icon-theme imagemagick-6-doc kdegames-card-data-kf5 keepass2-doc
kicad-doc-en lbreakout2-data libjfreechart-java-doc libreoffice-style-colibre lincity-ng-data lxde-icon-theme mame-doc
mate-backgrounds maxima-doc minetest-data neverball-data obsidian-icon-theme octave-doc openttd-opengfx
oxygen-icon-theme phpmyadmin pidgin-data pingus-data pokerth-data povray-examples python-astropy-doc python-scipy-doc
qgis-common qtbase5-doc-html r-cran-ggplot2 sphinx-doc supertux-data tango-icon-theme teeworlds-data tuxpaint-data
wireshark-doc wordpress xmoto-data zabbix-frontend-php
""".split()
MARK = ".made-by-png_set"
SIGNATURE = b"\x89PNG\r\n\x1a\n"
LARGEST = 4 << 20


def chunks(data):
    """(type, data) of each chunk."""
    at = len(SIGNATURE)
    while at + 12 <= len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        yield kind, data[at + 8:at + 8 + size]
        at += 12 + size


def named_producer(kind, body):
    """A producer that a text chunk names, or None."""
    if kind not in (b"tEXt", b"iTXt") or b"\0" not in body:
        return None
    key, text = body.split(b"\0", 1)
    text = text.strip(b"\0").decode("latin1")
    if key.lower() == b"software":
        words = text.replace("@(#)", "").replace("GPL ", "").split()
        return " ".join(words[:2])[:24] if words[:1] in (["Adobe"], ["Macromedia"]) else (words or [""])[0][:24] or None
    if b"GIMP" in body[:200]:
        return "GIMP"
    if key in (b"date:create", b"date:modify", b"date:timestamp"):
        return "ImageMagick"
    if key == b"XML:com.adobe.xmp":
        return "Adobe XMP"
    return None


def filters(plain, ihdr):
    """Which filters stand in the rows of an image without interlace."""
    width, height, depth, colour = struct.unpack(">IIBB", ihdr[:10])
    if ihdr[12]:
        return "interlaced"
    row = (width * depth * {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}.get(colour, 1) + 7) // 8 + 1
    kinds = set(plain[:row * height:row])
    return "no filter" if kinds == {0} else "one filter" if len(kinds) == 1 else "filters by row"


def producer(data):
    """(producer, how it was told)"""
    sizes, idat, ihdr, named = [], b"", b"", None
    for kind, body in chunks(data):
        if kind == b"IHDR":
            ihdr = body
        if kind == b"IDAT":
            sizes.append(len(body))
            idat += body
        named = named or named_producer(kind, body)
    if named:
        return named, "text"
    if len(ihdr) < 13 or len(idat) < 2:
        return "damaged", "structure"
    try:
        rows = filters(zlib.decompressobj().decompress(idat), ihdr)
    except zlib.error:
        rows = "bad zlib"
    parts = "one IDAT" if len(sizes) == 1 else "IDATs of %d" % sizes[0]
    return "zlib level class %d, window %d, %s, %s" % (idat[1] >> 6, 8 + (idat[0] >> 4), parts, rows), "structure"


def fetch(package, folder):
    """Downloads and unpacks; returns its version, or None."""
    place = os.path.join(folder, "packages", package)
    unpacked = os.path.join(folder, "unpacked", package)
    os.makedirs(place, exist_ok=True)
    os.makedirs(os.path.dirname(unpacked), exist_ok=True)
    files = [name for name in os.listdir(place) if name.endswith(".deb")]
    if not files:
        if subprocess.run(["apt-get", "download", package], cwd=place, capture_output=True).returncode:
            return None
        files = [name for name in os.listdir(place) if name.endswith(".deb")]
    if not os.path.isdir(unpacked):
        subprocess.run(["dpkg", "-x", os.path.join(place, files[0]), unpacked + ".part"], check=True)
        os.rename(unpacked + ".part", unpacked)
    return files[0].split("_")[1]


def choose(unpacked, limit_files, limit_bytes, seen):
    paths = []
    for where, _, names in os.walk(unpacked):
        paths += [os.path.relpath(os.path.join(where, name), unpacked) for name in names if name.endswith(".png")]
    total, chosen = 0, []
    for path in sorted(paths, key=lambda path: hashlib.sha256(os.fsencode(path)).digest()):
        full = os.path.join(unpacked, path)
        if os.path.islink(full) or len(chosen) >= limit_files:
            continue
        size = os.path.getsize(full)
        if size > LARGEST or total + size > limit_bytes:
            continue
        with open(full, "rb") as file:
            data = file.read()
        digest = hashlib.sha256(data).hexdigest()
        if data.startswith(SIGNATURE) and digest not in seen:
            seen.add(digest)
            total += size
            chosen.append((path, data, digest))
    return chosen


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--packages", default=",".join(PACKAGES))
    parser.add_argument("--files", type=int, default=40, help="a package; default: 40")
    parser.add_argument("--bytes", type=int, default=1500000, help="a package; default: 1500000")
    options = parser.parse_args()
    mark = os.path.join(options.folder, MARK)
    if os.path.exists(options.folder) and not os.path.exists(mark):
        sys.exit("%s is there, and not made by this script" % options.folder)
    os.makedirs(options.folder, exist_ok=True)
    open(mark, "w", encoding="ascii").close()
    chosen_folder = os.path.join(options.folder, "set")
    if os.path.isdir(chosen_folder):
        shutil.rmtree(chosen_folder)  # inside a folder that carries our mark
    seen, total, count, producers = set(), 0, 0, collections.Counter()
    with open(os.path.join(options.folder, "set.tsv"), "w", encoding="utf-8") as table:
        table.write("package\tversion\tpath\tbytes\tsha256\tproducer\ttold by\n")
        for package in options.packages.split(","):
            version = fetch(package, options.folder)
            if version is None:
                print("cannot be had:", package, file=sys.stderr)
                continue
            for path, data, digest in choose(os.path.join(options.folder, "unpacked", package), options.files,
                                             options.bytes, seen):
                who, how = producer(data)
                copy = os.path.join(chosen_folder, package, digest[:8] + "-" + os.path.basename(path))
                os.makedirs(os.path.dirname(copy), exist_ok=True)
                with open(copy, "wb") as file:
                    file.write(data)
                table.write("\t".join((package, version, path, str(len(data)), digest, who, how)) + "\n")
                producers[who] += 1
                total, count = total + len(data), count + 1
    for who, number in producers.most_common():
        print("%5d  %s" % (number, who))
    print("%d files, %d bytes, %d producers" % (count, total, len(producers)))


main()
