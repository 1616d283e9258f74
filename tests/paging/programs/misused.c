/* What a program can do to a managed mapping of a file past libc, which must end it rather than go on with
 * other bytes: "written" gives it write access, "closed" closes the descriptors behind it and uses their
 * numbers for another file. "plain" shows that without --files nothing is managed. */
#include "check.h"
#include "listed.h"
#include <fcntl.h>
#include <sys/syscall.h>

enum { PAGES = 12000 };

static long raw(long number, long a, long b, long c) {
    long answer;
    __asm__ volatile("syscall" : "=a"(answer) : "a"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
    return answer;
}

static int create(const char *folder, const char *name, uint64_t version) {
    char path[4200];
    snprintf(path, sizeof path, "%s/misused-%s", folder, name);
    int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600);
    unsigned char page[PAGE];
    for (size_t i = 0; i < PAGES; i++) {
        fill(page, i, version);
        if (write(fd, page, PAGE) != PAGE) { perror(path); exit(3); }
    }
    close(fd);
    fd = open(path, O_RDONLY);
    unlink(path);
    return fd;
}

/* Whether the descriptor is of the first file. */
static int is_one(int fd) {
    char link[64], target[4200];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, target, sizeof target - 1);
    target[length > 0 ? length : 0] = 0;
    return strstr(target, "misused-one") != NULL;
}

int main(int count, char **words) {
    (void)count;
    int plain = !strcmp(words[1], "plain");
    int fd = create(words[2], "one", 1), other = create(words[2], "other", 2);
    char *at = mmap(NULL, PAGES * PAGE, PROT_READ, MAP_PRIVATE, fd, 0);
    need(is_listed(at) == plain, "managed with --files alone");
    for (size_t i = 0; i < PAGES; i++) holds(at + i * PAGE, i, 1);
    if (plain) {
        /* The harness wants pages to leave and to return. */
        char *memory = map(64 << 20);
        for (int round = 0; round < 2; round++)
            for (size_t i = 0; i < 16384; i++)
                if (round) holds(memory + i * PAGE, i, 1);
                else fill(memory + i * PAGE, i, 1);
        return verdict("misused");
    }
    if (wrong) return verdict("misused");
    if (!strcmp(words[1], "written")) {
        need(raw(SYS_mprotect, (long)at, PAGE, PROT_READ | PROT_WRITE) == 0, "mprotect");
        *(volatile char *)at = 1;
    } else {
        for (int own = 3; own < 66000; own++)
            if (own != fd && is_one(own)) need(raw(SYS_dup2, other, own, 0) == own, "another file in its place");
        for (size_t i = 0; i < PAGES; i++) holds(at + i * PAGE, i, 1);
    }
    fprintf(stderr, "the program went on\n");
    return verdict("misused");
}
