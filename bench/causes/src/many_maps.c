/* Looks records up in a cached file, mapping and unmapping a window of it for each. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int main(int argc, char **argv) {
    char path[] = "pagewise-maps-XXXXXX";
    size_t size = 64u << 20, window = 64 << 10;
    int file = mkstemp(path);
    if (file < 0 || ftruncate(file, size) != 0) return 1;
    unlink(path);
    unsigned long place = 1, sum = 0;
    for (long i = argc > 1 ? atol(argv[1]) : 120000; i > 0; i--) {
        place = place * 6364136223846793005ul + 1442695040888963407ul;
        char *data = mmap(NULL, window, PROT_READ, MAP_SHARED, file, (place >> 33) % (size / window) * window);
        if (data == MAP_FAILED) return 1;
        sum += data[place >> 20 & 0xffff];
        munmap(data, window);
    }
    return sum == 1;
}
