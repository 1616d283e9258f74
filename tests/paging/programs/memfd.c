/* A heap in shared memory, as some runtimes have it. Argument: MiB. */
#include "check.h"

int main(int count, char **arguments) {
    size_t bytes = (size_t)(count > 1 ? atol(arguments[1]) : 100) << 20;
    int file = memfd_create("heap", 0);
    need(file >= 0 && ftruncate(file, bytes) == 0, "memfd");
    char *heap = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    for (size_t i = 0; i < bytes / PAGE; i++) fill(heap + i * PAGE, i, 1);
    usleep(1500000);
    for (size_t i = 0; i < bytes / PAGE; i++) holds(heap + i * PAGE, i, 1);
    return verdict("memfd");
}
