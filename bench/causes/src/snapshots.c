/* A store keeps writing while a child has a snapshot of it, as Redis does when it saves. */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv) {
    size_t size = 128u << 20;
    char *data = malloc(size);
    memset(data, 1, size);
    for (int round = argc > 1 ? atoi(argv[1]) : 12; round > 0; round--) {
        int done[2];
        char end;
        if (pipe(done) != 0) return 1;
        pid_t child = fork();
        if (child == 0) {
            close(done[1]);
            _exit(read(done[0], &end, 1) != 0);
        }
        close(done[0]);
        for (size_t at = 0; at < size; at += 4096) data[at]++;
        close(done[1]);
        waitpid(child, NULL, 0);
    }
    return 0;
}
