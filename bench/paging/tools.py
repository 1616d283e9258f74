"""Tools that read a file and write another one."""
import os
import subprocess
import sys
import time

from launching import ended_well, folder, launch, needs, per_second

WORD = (1 << 32) - 1
# Factors and shifts of a function's three steps.
STEPS = ((3, 5), (7, 3), (11, 9))


def sort(mib, prefix):
    """GNU sort of lines in an order of their own."""
    count = (mib << 20) // 105
    with folder() as place:
        with open(place / "in", "w") as lines:
            lines.writelines(f"{number * 7919 % count:010d} {'some words of a line, as there are':.52}\n"
                             for number in range(count))
        start = time.monotonic()
        words = [needs("sort"), "-S", "4G", "--parallel=1", place / "in", "-o", place / "out"]
        status = launch(prefix, words, env={**os.environ, "LC_ALL": "C"}).wait()
        spent = time.monotonic() - start
        ended_well(status)
        with open(place / "out") as lines:
            is_right = all(int(line[:10]) == number for number, line in enumerate(lines))
        is_right &= (place / "out").stat().st_size == (place / "in").stat().st_size
        return per_second(spent, is_right)


def mixed(number, x):
    """What a function of the source below returns."""
    for factor, shift in STEPS:
        x = (x * (factor + number) + (x >> shift)) & WORD
        if x & 1:
            x ^= (number * 2654435761) & WORD
    return x


def source(count):
    text = ["#include <stdio.h>\n"]
    for number in range(count):
        steps = "".join(f"  x = x * {factor + number}u + (x >> {shift}); if (x & 1) x ^= {(number * 2654435761) & WORD}u;\n"
                        for factor, shift in STEPS)
        text.append(f"__attribute__((noinline)) unsigned f{number}(unsigned x) {{\n{steps}  return x;\n}}\n")
    calls = "".join(f"  sum += f{number}({number}u);\n" for number in range(count))
    return "".join(text) + f"int main(void) {{\n  unsigned sum = 0;\n{calls}  printf(\"%u\\n\", sum);\n}}\n"


def gcc(mib, prefix):
    """One large source compiled; what comes out has to compute right."""
    count = mib * 16
    with folder() as place:
        (place / "large.c").write_text(source(count))
        start = time.monotonic()
        status = launch(prefix, [needs("gcc"), "-O1", "-o", place / "large", place / "large.c"]).wait()
        spent = time.monotonic() - start
        ended_well(status)
        told = subprocess.run([place / "large"], capture_output=True, text=True).stdout
        expected = sum(mixed(number, number) for number in range(count)) & WORD
        if told.strip() != str(expected):
            print(f"gcc: {told!r} in place of {expected}", file=sys.stderr)
        return per_second(spent, told.strip() == str(expected))
