/* Packs messages with a small LZ77 compressor that takes its tables from malloc for each message,
 * as most compression libraries do (a hash table of 256 KiB and a window copy). Linked statically
 * with musl, whose malloc maps every block above 128 KiB separately and unmaps it in free. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HASH_BITS = 16, MESSAGE = 16 * 1024 };

static uint32_t hash4(const uint8_t *p) {
    uint32_t v;
    memcpy(&v, p, 4);
    return (v * 2654435761u) >> (32 - HASH_BITS);
}

/* Returns the packed size of `n` bytes: literals cost one byte, matches three. */
static size_t pack(const uint8_t *in, size_t n) {
    uint32_t *table = malloc(sizeof *table << HASH_BITS);
    uint8_t *out = malloc(n + n / 2 + 160 * 1024);
    size_t o = 0, i = 0;
    if (!table || !out) {
        fprintf(stderr, "message_packer: out of memory\n");
        exit(1);
    }
    memset(table, 0, sizeof *table << HASH_BITS);
    while (i + 4 < n) {
        uint32_t h = hash4(in + i), candidate = table[h];
        size_t length = 0;
        table[h] = (uint32_t)i + 1;
        if (candidate)
            while (length < 255 && i + length < n && in[candidate - 1 + length] == in[i + length])
                length++;
        if (length >= 4) {
            out[o++] = (uint8_t)length;
            out[o++] = (uint8_t)(i - candidate);
            out[o++] = (uint8_t)((i - candidate) >> 8);
            i += length;
        } else {
            out[o++] = in[i++];
        }
    }
    free(out);
    free(table);
    return o;
}

int main(int argc, char **argv) {
    int messages = argc > 1 ? atoi(argv[1]) : 10000;
    uint8_t message[MESSAGE];
    uint32_t state = 1;
    size_t total = 0;
    for (size_t i = 0; i < sizeof message; i++) {
        state = state * 1664525u + 1013904223u;
        message[i] = (uint8_t)("etaoin shrdlu\n"[state >> 28 & 13]);
    }
    for (int i = 0; i < messages; i++) {
        message[i % MESSAGE] ^= (uint8_t)i;
        total += pack(message, sizeof message);
    }
    printf("%d messages, %zu bytes\n", messages, total);
    return 0;
}
