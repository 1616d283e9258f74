"""Arrays, tables and models in memory."""
import json
import subprocess

from launching import PYTHON, answer, ended_well, launch, needs_module

NUMPY = """
import json, sys, time
import numpy as np
count = int(sys.argv[1]) * (1 << 20) // 8 // 4 // 1024 * 1024
def block(number):
    return np.random.default_rng(number).standard_normal(1024)
a = np.empty(count)
for number in range(count // 1024):
    a[number * 1024:][:1024] = block(number)
start = time.monotonic()
b = a * 2 + 1                        # temporaries of the array's size
c = np.sort(b.reshape(-1, 4096), 1)  # rows sorted
mean, deviation = c.mean(0), b.std()
d = np.convolve(a[:count], np.ones(9) / 9, "same")
spent = time.monotonic() - start
wrong = 0
for number in range(0, count // 1024, 7):
    x = block(number)
    wrong += not np.array_equal(a[number * 1024:][:1024], x)
    wrong += not np.array_equal(b[number * 1024:][:1024], x * 2 + 1)
for row in range(0, count // 4096, 7):
    wrong += not np.array_equal(np.sort(b[row * 4096:][:4096]), c[row])
print(json.dumps({"figures": {"runs per second": 1 / spent}, "wrong": wrong}))
"""
PANDAS = """
import sys
import numpy as np, pandas as pd
count = int(sys.argv[1])
row = np.arange(count)
frame = pd.DataFrame({"key": row * 7919 % 1009, "value": row % 1000, "weight": row % 7 * 0.5})
groups = frame.groupby("key").agg({"value": "sum", "weight": "sum"})
order = frame.sort_values(["value", "key"], kind="stable")
print(len(groups), groups.value.sum(), int(groups.weight.sum() * 2), order.value.is_monotonic_increasing,
      (order.value * np.arange(count)).sum() == (np.sort(row % 1000) * np.arange(count)).sum())
"""
# A model's weights, swept over for each token. Sums stay below 2 ** 24, so that they are exact.
SIDE, LAYER_MIB, TOKENS = 2048, 16, 8
TORCH = """
import sys
import torch
torch.set_num_threads(2)
side, layers, tokens = map(int, sys.argv[1:])
row = torch.arange(side, dtype=torch.float32)
weights = [(row[:, None] + row + layer) % 3 for layer in range(layers)]
x = row % 97
for token in range(tokens):
    for weight in weights:
        x = (weight @ x) % 97
print(int(x.sum()))
"""


def torch_answer(layers):
    x = [place % 97 for place in range(SIDE)]
    for _ in range(TOKENS):
        for layer in range(layers):
            # A row depends on its number modulo three alone.
            of = [sum((row + place + layer) % 3 * value for place, value in enumerate(x)) % 97 for row in range(3)]
            x = [of[row % 3] for row in range(SIDE)]
    return sum(x)


def numpy(mib, prefix):
    needs_module("numpy")
    program = launch(prefix, [PYTHON, "-c", NUMPY, str(mib)], stdout=subprocess.PIPE)
    output, _ = program.communicate()
    ended_well(program.returncode)
    return json.loads(output)


def pandas(mib, prefix):
    needs_module("pandas")
    count = (mib << 20) // 110
    values = sum(row % 1000 for row in range(count))
    weights = sum(row % 7 for row in range(count))
    return answer(prefix, [PYTHON, "-c", PANDAS, count], f"1009 {values} {weights} True True")


def torch(mib, prefix):
    needs_module("torch")
    # The interpreter with its libraries takes the rest.
    layers = max(2, (mib - 400) // LAYER_MIB)
    return answer(prefix, [PYTHON, "-c", TORCH, SIDE, layers, TOKENS], str(torch_answer(layers)))
