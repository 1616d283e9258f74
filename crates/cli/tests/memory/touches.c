/* Memory that two functions touch first, page by page: three quarters and a quarter; and as much that is given back. */
#define _GNU_SOURCE
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#define TOUCHES __attribute__((noinline)) static void

static char *pages(size_t size) {
    char *start = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return start == MAP_FAILED ? abort(), NULL : start;
}

/* So long on each page that there are samples enough: they are taken by time. */
static void work(char *page) {
    for (int i = 0; i < 200; i++) {
        memset(page, i, 4096);
        __asm__ volatile("" ::: "memory");
    }
}

TOUCHES most(char *start, size_t size) {
    for (char *at = start; at < start + size; at += 4096) {
        *(volatile char *)at = 1;
        work(at);
    }
}

TOUCHES rest(char *start, size_t size) {
    for (char *at = start; at < start + size; at += 4096) {
        *(volatile char *)at = 1;
        work(at);
    }
}

TOUCHES returned(char *start, size_t size) {
    for (char *at = start; at < start + size; at += 4096) {
        *(volatile char *)at = 1;
        work(at);
    }
}

int main(void) {
    size_t size = 192 << 20;
    char *start, *other;
    /* Each page by a fault of its own. */
    prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
    other = pages(size);
    returned(other, size);
    munmap(other, size);
    start = pages(size);
    most(start, size / 4 * 3);
    rest(start + size / 4 * 3, size / 4);
    return 0;
}
