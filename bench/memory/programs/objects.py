"""Objects of many sizes, most of them dropped again, before the interpreter tidies up."""
import ctypes
import random

random.seed(7)
held = [bytes(random.randrange(16, 4000)) for _ in range(60_000)]
table = {number: str(number) * 3 for number in range(200_000)}
held = held[::9]
for number in range(0, 200_000, 2):
    del table[number]
ctypes.CDLL(None).pagewise_truth()
