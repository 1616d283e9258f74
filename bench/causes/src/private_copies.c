/* Writes to each page of a private mapping of a file that is in memory: each first write copies a
 * page of the file. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int main(int argc, char **argv) {
    size_t size = 128u << 20, block = 1u << 20;
    char name[] = "/var/tmp/private_copies.XXXXXX", *content = malloc(block);
    int file = mkstemp(name);
    if (file < 0 || !content) return 1;
    unlink(name);
    memset(content, 1, block);
    for (size_t at = 0; at < size; at += block)
        if (write(file, content, block) != (ssize_t)block) return 1;
    /* The mappings stay: nothing is unmapped over and over. */
    char *memory = NULL;
    for (int round = argc > 1 ? atoi(argv[1]) : 4; round > 0; round--) {
        memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
        if (memory == MAP_FAILED) return 1;
        for (size_t at = 0; at < size; at += 4096) memory[at]++;
    }
    return memory[0] != 2;
}
