/* A child is forked again and again, and writes to everything that it shares with its parent: each
 * page is copied. */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv) {
    size_t size = 32u << 20;
    char *data = malloc(size);
    memset(data, 1, size);
    for (int round = argc > 1 ? atoi(argv[1]) : 40; round > 0; round--) {
        pid_t child = fork();
        if (child == 0) {
            for (size_t at = 0; at < size; at += 4096) data[at]++;
            _exit(0);
        }
        waitpid(child, NULL, 0);
    }
    return 0;
}
