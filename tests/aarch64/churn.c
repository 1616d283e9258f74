// Requests and returns 1 MiB, again and again, three calls below main: each round faults anew.
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

static volatile unsigned char sum;

static void fill(unsigned char *block, size_t size)
{
    for (size_t at = 0; at < size; at += 4096)
        block[at] = (unsigned char)at;
    sum += block[size / 2];
}

static void inner(size_t size)
{
    unsigned char *block = malloc(size);
    if (!block)
        exit(1);
    fill(block, size);
    free(block);
    sum += 1;
}

static void outer(int round)
{
    inner((1 << 20) + (size_t)(round % 7) * 4096);
    sum += 1;
}

int main(int argc, char **argv)
{
    // Without glibc's own adaptation each block is mapped and unmapped.
    mallopt(M_MMAP_THRESHOLD, 128 << 10);
    int rounds = argc > 1 ? atoi(argv[1]) : 1000;
    for (int round = 0; round < rounds; round++)
        outer(round);
    return 0;
}
