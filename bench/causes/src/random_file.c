/* Maps FILE and touches pages at random positions: each read brings in pages that are never used.
 *
 *   cc -O1 -o random_file random_file.c && head -c 600M /dev/urandom > file && sync
 *   pagewise doctor --prove --budget 40s -- ./random_file file 2000      (as root, the file not in memory)
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

int main(int argc, char **argv) {
    struct stat about;
    int file = argc > 2 ? open(argv[1], O_RDONLY) : -1;
    if (file < 0 || fstat(file, &about) != 0) return 1;
    const char *data = mmap(NULL, about.st_size, PROT_READ, MAP_SHARED, file, 0);
    if (data == MAP_FAILED) return 1;
    unsigned long place = 88172645463325252ul, pages = about.st_size / 4096, sum = 0;
    for (long left = atol(argv[2]); left > 0; left--) {
        place ^= place << 13, place ^= place >> 7, place ^= place << 17;
        sum += data[place % pages * 4096];
    }
    return sum == 1;
}
