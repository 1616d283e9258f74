/* A process with much memory forks for each small task, as a server that forks per connection: page
 * tables are copied, though the child writes nothing. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv) {
    size_t size = 512u << 20;
    char *data = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(data, size, MADV_NOHUGEPAGE);
    memset(data, 1, size);
    for (int task = argc > 1 ? atoi(argv[1]) : 150; task > 0; task--) {
        pid_t child = fork();
        if (child == 0) _exit(data[task * 4096L] != 1);
        waitpid(child, NULL, 0);
    }
    return 0;
}
