"""The numbers of test_rates.c, worked out by SciPy: python3 rates_expected.py"""
import numpy as np
from scipy.interpolate import PchipInterpolator

A = np.array([[1000, 30.0], [1800, 34.5], [3500, 38.0], [7000, 41.0], [15000, 46.0], [21000, 47.0]])
B = np.array([[900, 31.0], [2100, 35.5], [3000, 37.0], [8000, 42.5], [14000, 47.5]])
# Nearly flat, then steep.
C = np.array([[1000, 30.0], [1001, 36.0], [1002, 40.0], [40000, 41.0], [41000, 50.0]])


def curve(points):
    return PchipInterpolator(points[:, 1], np.log(points[:, 0]))


def bd(anchor, points, low, high):
    a, b = curve(anchor), curve(points)
    area = b.integrate(low, high) - a.integrate(low, high)
    return np.exp(area / (high - low))


if __name__ == "__main__":
    for name, points in (("A", A), ("B", B), ("C", C)):
        for q in (31.0, 33.3, 37.9, 40.5, 44.0, 46.9):
            if points[0, 1] <= q <= points[-1, 1]:
                print(f"    {{{name}, {q}, {np.exp(curve(points)(q)):.12g}}},")
    print("A, B, 31 to 47 ", f"{bd(A, B, 31, 47):.14g}")
    print("A, B, 35 to 45 ", f"{bd(A, B, 35, 45):.14g}")
    print("A, C, 31 to 46.5", f"{bd(A, C, 31, 46.5):.14g}")
    two = np.array([[1000, 30.0], [4000, 40.0]])
    x = np.log(4) / 10 * 5
    print("two points at 35", 1000 * np.exp(x))
    print("ssim 0.95", f"{-10 * np.log10(0.05):.14g}")
