// Limits that a program sets itself, with memory away: of address space, until a mapping is refused; and of
// descriptors, all in use, with a fork. Usage: limits MIB space|descriptors; status 1 if a page is wrong, or a
// child ends otherwise than well or by SIGBUS.
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static uint64_t *base;
static size_t pages;
static long wrong_pages(void) {
    long wrong = 0;
    for (size_t i = 0; i < pages; i++) wrong += base[i * 512] != i + 1;
    return wrong;
}
static void limit(int which, rlim_t most) {
    struct rlimit limit = {most, most};
    if (setrlimit(which, &limit)) perror("setrlimit"), exit(2);
}

int main(int count, char **v) {
    if (count < 3) return fprintf(stderr, "usage: limits MIB space|descriptors\n"), 2;
    pages = strtoul(v[1], 0, 10) * 256;
    base = mmap(0, pages * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (size_t i = 0; i < pages; i++) base[i * 512] = i + 1;
    long wrong = wrong_pages();
    if (!strcmp(v[2], "space")) {
        limit(RLIMIT_AS, 1600ul << 20);
        int got = 0;
        while (mmap(0, 16 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED) got++;
        wrong += wrong_pages();
        printf("%d mappings of 16 MiB, %ld wrong\n", got, wrong);
        return wrong != 0;
    }
    limit(RLIMIT_NOFILE, 200);
    int opened = 0;
    while (open("/dev/null", O_RDONLY) >= 0) opened++;
    pid_t child = fork();
    if (child == 0) _exit(wrong_pages() != 0);
    int status = -1;
    waitpid(child, &status, 0);
    wrong += wrong_pages();
    printf("%d descriptors, %ld wrong, the child ended with %d\n", opened, wrong, status);
    return wrong || (status && status != SIGBUS);
}
