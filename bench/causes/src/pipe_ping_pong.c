/* Parent and child send one byte back and forth through two pipes. */
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv) {
    int there[2], back[2];
    char byte = 0;
    long rounds = argc > 1 ? atol(argv[1]) : 60000;
    if (pipe(there) != 0 || pipe(back) != 0) return 1;
    if (fork() == 0) {
        for (long i = 0; i < rounds; i++)
            if (read(there[0], &byte, 1) != 1 || write(back[1], &byte, 1) != 1) _exit(1);
        _exit(0);
    }
    for (long i = 0; i < rounds; i++)
        if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1) return 1;
    wait(NULL);
    return 0;
}
