/* Queries the size of the same few files again and again, and opens them. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

int main(int argc, char **argv) {
    static const char *names[] = {"/usr/bin/env", "/etc/passwd", "/usr/lib/os-release", "/missing"};
    struct stat what;
    for (long i = argc > 1 ? atol(argv[1]) : 500000; i > 0; i--) {
        const char *name = names[i & 3];
        if (stat(name, &what) == 0) {
            int file = open(name, O_RDONLY);
            if (file >= 0) close(file);
        }
    }
    return 0;
}
