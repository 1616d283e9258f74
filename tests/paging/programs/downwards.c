/* A thread changes pages from the last to the first, so that each that is missed brings those below it
 * along; meanwhile the program forks, over and over, and each child checks what it has. Arguments: MiB, forks. */
#include "check.h"

static char *base;
static size_t pages;
static uint64_t *version;
static atomic_size_t changing;
static atomic_int stop;

static void *writer(void *unused) {
    (void)unused;
    while (!stop)
        for (size_t i = pages; i-- > 0 && !stop;) {
            changing = i;
            holds(base + i * PAGE, i * 4, version[i]);
            fill(base + i * PAGE, i * 4, ++version[i]);
        }
    return NULL;
}

/* All but the page at which the thread was, which is none of the child's. */
static int child(unsigned first) {
    checks = wrong = 0;
    for (size_t i = first % 61; i < pages; i += 61)
        if (i != changing) holds(base + i * PAGE, i * 4, version[i]);
    return wrong != 0;
}

int main(int count, char **arguments) {
    size_t mib = count > 1 ? atol(arguments[1]) : 80;
    unsigned forks = count > 2 ? atoi(arguments[2]) : 40;
    pages = mib * 256;
    base = map(pages * PAGE);
    version = calloc(pages, sizeof *version);
    for (size_t i = 0; i < pages; i++) fill(base + i * PAGE, i * 4, version[i] = i + 1);
    pthread_t thread;
    pthread_create(&thread, NULL, writer, NULL);
    for (unsigned round = 0; round < forks; round++) {
        pid_t pid = fork();
        if (pid == 0) _exit(child(round * 7));
        int status = -1;
        need(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0, "child");
    }
    stop = 1;
    pthread_join(thread, NULL);
    for (size_t i = 0; i < pages; i++) holds(base + i * PAGE, i * 4, version[i]);
    return verdict("downwards");
}
