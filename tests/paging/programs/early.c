/* A program whose own malloc works from `main` on only, as in Lisps that bring their heap with them.
 * Argument: MiB. */
#include "check.h"

static int is_ready;
static char *next, *behind;

void *malloc(size_t bytes) {
    if (!is_ready) {
        static const char text[] = "malloc before main\n";
        if (write(2, text, sizeof text - 1)) _exit(9);
    }
    bytes = (bytes + 31) & ~(size_t)15;
    if (!next || next + bytes > behind) {
        size_t part = bytes > 1 << 20 ? bytes : 1 << 20;
        next = mmap(NULL, part, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (next == MAP_FAILED) return NULL;
        behind = next + part;
    }
    char *at = next;
    next += bytes;
    return at;
}
void free(void *at) { (void)at; }
void *calloc(size_t count, size_t bytes) { return malloc(count * bytes); }
void *realloc(void *at, size_t bytes) { return at ? NULL : malloc(bytes); }

int main(int count, char **arguments) {
    is_ready = 1;
    if (count < 2) return 2;
    size_t pages = (size_t)atoi(arguments[1]) * 256;
    char *large = malloc((pages + 1) * PAGE), *base = large + (-(uintptr_t)large & (PAGE - 1));
    for (size_t page = 0; page < pages; page++) fill(base + page * PAGE, page, 1);
    for (size_t page = 0; page < pages; page++) holds(base + page * PAGE, page, 1);
    return verdict("early");
}
