"""A video of grey frames, several of which are equal to earlier ones: the golden file equal_frames."""
import sys

SIDE, CONTENT = 24, (0, 0, 1, 2, 0, 0, 1, 1, 3, 2)


def frame(kind):
    return bytes(0 if kind == 0 else (x * kind + y * y) % (60 * kind) for y in range(SIDE) for x in range(SIDE))


out = sys.stdout.buffer
out.write(b"YUV4MPEG2 W%d H%d F25:1 Ip A1:1 Cmono\n" % (SIDE, SIDE))
for number in CONTENT:
    out.write(b"FRAME\n" + frame(number))
