"""A volume in NIfTI, of 12 bits or of colours, whose frames are alike: the golden files linked_grey and linked_rgb.
usage: linked.py COMPONENTS

Frames have a texture in common, which moves by a row in the middle, and little noise of their own. One frame is equal to
one before."""
import struct
import sys

COLUMNS, ROWS, CONTENT = 40, 36, (0, 1, 2, 3, 4, 2, 5, 6, 7, 8, 9, 10)
UINT16, RGB24 = 512, 128


def random_numbers(seed):
    while True:
        seed = (seed * 1103515245 + 12345) % 2**31
        yield seed >> 16


components = int(sys.argv[1])
texture = [value for value, _ in zip(random_numbers(1), range((ROWS + 1) * COLUMNS * components))]


def frame(number):
    noise, first = random_numbers(number + 2), number // 6 * COLUMNS * components
    for place in range(ROWS * COLUMNS * components):
        row, column = divmod(place // components, COLUMNS)
        value = 700 + 20 * row + 13 * column + texture[first + place] % 512 + next(noise) % 16
        yield value if components == 1 else value // 10


header = bytearray(352)
struct.pack_into("<i", header, 0, 348)
struct.pack_into("<8h", header, 40, 3, COLUMNS, ROWS, len(CONTENT), 1, 1, 1, 1)
struct.pack_into("<2h", header, 70, UINT16 if components == 1 else RGB24, 16 if components == 1 else 24)
struct.pack_into("<8f", header, 76, *[1.0] * 8)
struct.pack_into("<3f", header, 108, 352, 1, 0)
header[344:348] = b"n+1\0"
sys.stdout.buffer.write(header)
for number in CONTENT:
    samples = list(frame(number))
    sys.stdout.buffer.write(struct.pack(f"<{len(samples)}{'H' if components == 1 else 'B'}", *samples))
