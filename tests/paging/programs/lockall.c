/* mlockall of all kinds: locked memory stays resident, within the budget; what would not fit is
 * refused. Run with --memory 64M --min-region 1M. Argument: "now" for present memory only, or
 * "all". */
#include "check.h"
#include <sys/resource.h>

#define MIB (1 << 20)
#ifndef MCL_ONFAULT
#define MCL_ONFAULT 4
#endif

static char *filled(size_t mib) {
    char *at = map(mib * MIB);
    for (size_t i = 0; i < mib * 256; i++) fill(at + i * PAGE, i, mib);
    return at;
}

static size_t present(char *at, size_t mib) {
    unsigned char there[64 * 256];
    size_t count = 0;
    need(mincore(at, mib * MIB, there) == 0, "mincore");
    for (size_t i = 0; i < mib * 256; i++) count += there[i] & 1;
    return count;
}

static void all_hold(char *at, size_t mib) {
    for (size_t i = 0; i < mib * 256; i++) holds(at + i * PAGE, i, mib);
}

/* What may leave does. */
static void send_away(char *at, size_t mib) { madvise(at, mib * MIB, 21 /* MADV_PAGEOUT */); }

/* More than the budget goes through memory. */
static void press(void) {
    char *at = filled(100);
    all_hold(at, 100);
    munmap(at, 100 * MIB);
}

static long locked_kib(void) {
    FILE *file = fopen("/proc/self/status", "r");
    char line[200];
    long kib = -1;
    while (fgets(line, sizeof line, file)) sscanf(line, "VmLck: %ld", &kib);
    fclose(file);
    return kib;
}

static void resized(void) {
    char *at = filled(4);
    need(mlock(at, 4 * MIB) == 0, "mlock");
    at = mremap(at, 4 * MIB, 8 * MIB, MREMAP_MAYMOVE);
    need(at != MAP_FAILED, "mremap of locked memory");
    need(present(at, 8) == 8 * 256, "locked memory is there after it grew");
    all_hold(at, 4);
    munmap(at, 8 * MIB);
}

static void present_memory(void) {
    char *kept = filled(20);
    press();
    send_away(kept, 20);
    need(present(kept, 20) == 0, "it can leave");
    errno = 0;
    need(mlockall(MCL_CURRENT) == 0, "mlockall");
    need(present(kept, 20) == 20 * 256, "all of it is there");
    need(locked_kib() >= 20 * 1024, "the kernel knows of it");
    press();
    send_away(kept, 20);
    need(present(kept, 20) == 20 * 256, "all of it stays");
    all_hold(kept, 20);
    pid_t pid = fork();
    if (pid == 0) {
        send_away(kept, 20);
        need(present(kept, 20) == 0, "a child inherits no locks");
        all_hold(kept, 20);
        _exit(wrong != 0);
    }
    int status = -1;
    need(waitpid(pid, &status, 0) == pid && status == 0, "the child of a locked process");
    need(munlockall() == 0, "munlockall");
    send_away(kept, 20);
    need(present(kept, 20) == 0, "it may leave again");
    all_hold(kept, 20);
    munmap(kept, 20 * MIB);
}

static void too_much(void) {
    char *large = filled(80);
    errno = 0;
    need(mlockall(MCL_CURRENT) == -1 && errno == ENOMEM, "more than the budget is refused");
    send_away(large, 60);
    need(present(large, 60) == 0, "a refusal locks nothing");
    all_hold(large, 80);
    munmap(large, 80 * MIB);
}

static void future_memory(void) {
    need(mlockall(MCL_FUTURE) == 0, "mlockall of future memory");
    char *at = map(8 * MIB);
    need(present(at, 8) == 8 * 256, "new memory is there at once");
    char *file = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    need(file != MAP_FAILED && locked_kib() >= 8 * 1024 + 16, "memory that is not managed as well");
    errno = 0;
    need(mmap(NULL, 90 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED && errno == EAGAIN,
         "what does not fit is refused as by RLIMIT_MEMLOCK");
    need(mmap(NULL, 90 * MIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED, "address space is not");
    need(munlockall() == 0, "munlockall");
    need(mlockall(MCL_FUTURE | MCL_ONFAULT) == 0, "mlockall on faults");
    char *later = map(8 * MIB);
    need(present(later, 8) == 0, "nothing is there before it is touched");
    for (size_t i = 0; i < 8 * 256; i++) fill(later + i * PAGE, i, 8);
    need(munlockall() == 0, "munlockall");
    need(mlockall(MCL_CURRENT | MCL_ONFAULT) == 0, "present memory on faults");
    press();
    need(present(later, 8) == 8 * 256, "what was touched stays");
    all_hold(later, 8);
    need(munlockall() == 0, "munlockall");
    munmap(at, 8 * MIB);
    munmap(later, 8 * MIB);
}

int main(int count, char **arguments) {
    need(mlockall(0) == -1 && errno == EINVAL, "no flags");
    need(mlockall(64) == -1 && errno == EINVAL, "unknown flags");
    need(mlockall(MCL_ONFAULT) == -1 && errno == EINVAL, "on faults alone");
    resized();
    if (count > 1 && !strcmp(arguments[1], "all")) {
        present_memory();
        too_much();
        future_memory();
    }
    press();
    return verdict("lockall");
}
