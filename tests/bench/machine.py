"""The machine that figures are of."""

import platform


def model():
    """The processor's name."""
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as lines:
        for line in lines:
            if line.startswith("model name"):
                return line.split(":")[1].strip()
    return platform.processor()
