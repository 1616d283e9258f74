/* A heap in shared memory, as some runtimes have it. Arguments: MiB, and MiB of an array that is swept over beside it. */
#include "check.h"

int main(int count, char **arguments) {
    size_t bytes = (size_t)(count > 1 ? atol(arguments[1]) : 100) << 20;
    int file = memfd_create("heap", 0);
    need(file >= 0 && ftruncate(file, bytes) == 0, "memfd");
    char *heap = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    for (size_t i = 0; i < bytes / PAGE; i++) fill(heap + i * PAGE, i, 1);
    usleep(1500000);
    size_t pages = (size_t)(count > 2 ? atol(arguments[2]) : 0) * 256;
    char *array = pages ? map(pages * PAGE) : NULL;
    for (size_t i = 0; i < pages; i++) fill(array + i * PAGE, i, 2);
    for (int sweep = 0; sweep < 3; sweep++)
        for (size_t i = 0; i < pages; i++) holds(array + i * PAGE, i, 2);
    for (size_t i = 0; i < bytes / PAGE; i++) holds(heap + i * PAGE, i, 1);
    return verdict("memfd");
}
