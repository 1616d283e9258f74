"""Fills 80 MiB, each page with its number, and reads them back: in a smaller budget most pages leave and return."""

pages = 20480
memory = bytearray(pages * 4096)
for page in range(pages):
    memory[page * 4096 : (page + 1) * 4096] = page.to_bytes(4, "little") * 1024
for page in range(pages):
    assert memory[page * 4096 : (page + 1) * 4096] == page.to_bytes(4, "little") * 1024, page
print("right")
