/* Processes that share pages with others of a fork, and end by exit or exec while other threads go on
 * reading, and while libc has a file's last lines to write out of managed memory. Each must end as it
 * would without the pager. Arguments: MiB, folder, rounds. */
#include "check.h"
#define READERS 3
#define LINES 20000
#define BUFFER (1 << 20)

static char *base;
static size_t pages;
static atomic_int rounds_read;

/* Reads all pages, in an order of its own, until the process ends. */
static void *read_on(void *argument) {
    size_t step = 2 * (size_t)argument + 1;
    for (size_t at = 0;; at = (at + step) % pages) {
        if (!holds(base + at * PAGE, at, 1)) _exit(9);
        if (at + step >= pages) rounds_read++;
    }
}

static void start_readers(void) {
    rounds_read = 0;
    for (size_t i = 0; i < READERS; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, read_on, (void *)i)) _exit(8);
    }
    while (!rounds_read) usleep(1000);
}

static void name_of(char *name, size_t bytes, const char *folder, int round, const char *who) {
    snprintf(name, bytes, "%s/ends-%d-%s", folder, round, who);
}

/* Lines that stay in the buffer, which is evicted while the pages are read, until exit writes them. */
static void leave_lines(const char *folder, int round, const char *who) {
    char name[4096];
    name_of(name, sizeof name, folder, round, who);
    FILE *file = fopen(name, "w");
    if (!file || setvbuf(file, map(BUFFER), _IOFBF, BUFFER)) _exit(7);
    for (int i = 0; i < LINES; i++) fprintf(file, "line %d of %s\n", i, who);
}

static void check_lines(const char *folder, int round, const char *who) {
    char name[4096], line[64], wanted[64];
    name_of(name, sizeof name, folder, round, who);
    FILE *file = fopen(name, "r");
    need(file != NULL, "the file is there");
    if (!file) return;
    int i = 0;
    for (; fgets(line, sizeof line, file); i++) {
        snprintf(wanted, sizeof wanted, "line %d of %s\n", i, who);
        if (strcmp(line, wanted)) break;
    }
    need(i == LINES && feof(file), "all lines have been written");
    fclose(file);
    unlink(name);
}

static void await(pid_t child, const char *what) {
    int status;
    need(waitpid(child, &status, 0) == child, "wait");
    checks++;
    if (status) {
        wrong++;
        fprintf(stderr, "WRONG: %s: status %#x\n", what, status);
    }
}

/* Both a child and a parent, so that its own slots are shared and it has some for itself. */
static void in_the_middle(const char *folder, int round) {
    leave_lines(folder, round, "parent");
    pid_t child = fork();
    if (child == 0) {
        execl("/bin/true", "true", NULL); /* not exit, which would write the parent's lines as well */
        _exit(5);
    }
    int status;
    if (waitpid(child, &status, 0) != child || status) _exit(4);
    start_readers();
    if (round % 2) exit(0);
    fflush(NULL);
    execl("/bin/true", "true", NULL);
    _exit(3);
}

int main(int count, char **arguments) {
    size_t mib = count > 1 ? atol(arguments[1]) : 64;
    const char *folder = count > 2 ? arguments[2] : ".";
    int rounds = count > 3 ? atoi(arguments[3]) : 6;
    pages = mib * 256;
    base = map(pages * PAGE);
    for (size_t i = 0; i < pages; i++) fill(base + i * PAGE, i, 1);
    for (int round = 0; round < rounds; round++) {
        fflush(NULL);
        pid_t child = fork();
        if (child == 0) in_the_middle(folder, round);
        await(child, round % 2 ? "exit" : "exec");
        check_lines(folder, round, "parent");
    }
    return verdict("ends");
}
