"""A large table, and many children that each read half of it and change a part: their results come
back through pipes, and the parent changes the table meanwhile."""
import hashlib
import os
import sys

PAGES = int(28_000 * float(sys.argv[1]))
STEP = 4096
table = bytearray(PAGES * STEP)
for page in range(PAGES):
    table[page * STEP : page * STEP + 64] = hashlib.sha256(b"%d" % page).digest() * 2


def work(seed):
    total = hashlib.sha256()
    for page in range(seed % 2, PAGES, 2):
        total.update(table[page * STEP : page * STEP + 64])
    for page in range(seed, PAGES, 40):
        table[page * STEP + 100] = seed + 1
    for page in range(seed, PAGES, 40):
        total.update(table[page * STEP : page * STEP + 128])
    return total.hexdigest()


for seed in range(8):
    pipes = []
    for child in range(2):
        reader, writer = os.pipe()
        if os.fork() == 0:
            os.close(reader)
            os.write(writer, work(seed * 2 + child).encode())
            os._exit(0)
        os.close(writer)
        pipes.append(reader)
    # Bytes that no child looks at.
    for page in range(seed, PAGES, 9):
        table[page * STEP + 2000] = seed
    for reader in pipes:
        print(seed, os.read(reader, 100).decode())
        os.close(reader)
    for _ in pipes:
        assert os.wait()[1] == 0
print(hashlib.sha256(table).hexdigest())
