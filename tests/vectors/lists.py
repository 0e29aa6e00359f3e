#!/usr/bin/env python3
"""Writes a DICOM file without pixels to stdout: points of contours and other lists of numbers, with what is no number among
them. The bytes are the same each time. usage: lists.py > FILE"""
import struct
import sys

state = 1


def below(limit):
    global state
    state = (state * 1103515245 + 12345) % 2**31
    return (state >> 8) % limit


def element(tag, vr, value):
    value += b"\0" * (len(value) % 2) if vr == b"UI" else b" " * (len(value) % 2)
    return struct.pack("<HH2sH", tag >> 16, tag & 0xffff, vr, len(value)) + value


def points(count):
    """A way of small steps, in two decimals, at one height"""
    at, step, values = [below(20000) - 10000, below(20000) - 10000], [60, -70], []
    for _ in range(count):
        for k in range(2):
            step[k] += below(5) - 2
            at[k] += step[k]
            values.append(b"%s%d.%02d" % (b"-" if at[k] < 0 else b"", abs(at[k]) // 100, abs(at[k]) % 100))
        values.append(b"-12.5")
    return b"\\".join(values)


def odd(count):
    """Numbers of up to 23 characters, and others"""
    characters = b"0123456789.-e+E, \0\xff"
    return b"\\".join(bytes(characters[below(len(characters) if i % 4 == 0 else 12)] for _ in range(below(24)))
                      for i in range(count))


syntax = element(0x00020010, b"UI", b"1.2.840.10008.1.2.1")
body = element(0x00080016, b"UI", b"1.2.840.10008.5.1.4.1.1.481.3") + element(0x00080060, b"CS", b"RTSTRUCT")
for _ in range(8):
    body += element(0x30060050, b"DS", points(100)) + element(0x30060050, b"DS", odd(40))
    body += element(0x30040058, b"DS", odd(30)) + element(0x00200013, b"IS", b"\\".join(b"%d" % (i * i) for i in range(40)))
sys.stdout.buffer.write(bytes(128) + b"DICM" + element(0x00020000, b"UL", struct.pack("<I", len(syntax))) + syntax + body)
