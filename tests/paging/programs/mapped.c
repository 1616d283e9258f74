/* Files mapped to be read, which --files manages: every byte is that of the file, and every call on
 * such memory answers as for the kernel's own mapping. Run with --files 1M. Arguments: MiB, a folder on
 * a disk. */
#include "check.h"
#include "listed.h"
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#define TAIL 1234 /* bytes in the last page */

static size_t pages; /* whole ones; one with TAIL bytes follows */
static char path[4096];
static unsigned char last[PAGE];
static sigjmp_buf back;

static void on_bus(int number) { (void)number; siglongjmp(back, 1); }

static size_t bytes(void) { return pages * PAGE + TAIL; }

static void create(void) {
    int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600);
    unsigned char page[PAGE];
    for (size_t i = 0; i <= pages; i++) {
        fill(page, i, 1);
        size_t count = i < pages ? PAGE : TAIL;
        if (write(fd, page, count) != (ssize_t)count) { perror(path); exit(3); }
    }
    memset(last, 0, PAGE);
    memcpy(last, page, TAIL);
    fsync(fd);
    close(fd);
}

static char *map_file(int sharing, int more) {
    int fd = open(path, O_RDONLY);
    char *at = mmap(NULL, bytes(), PROT_READ, sharing | more, fd, 0);
    if (at == MAP_FAILED) { perror("mmap"); exit(3); }
    close(fd);
    return at;
}

static char *managed(int sharing) {
    char *at = map_file(sharing, 0);
    need(!is_listed(at), "the mapping is managed");
    return at;
}

static void drop(char *at) { need(munmap(at, bytes()) == 0, "munmap"); }

/* Page `i` of the file is at `at`. */
static void page_is(const char *at, size_t i) {
    if (i < pages) { holds(at, i, 1); return; }
    need(memcmp(at, last, PAGE) == 0, "the last page, with zeros behind the end");
}

static void all(const char *at) {
    for (size_t i = 0; i <= pages; i++) page_is(at + i * PAGE, i);
}

static void *at_random(void *at) {
    uint64_t seed = (uintptr_t)&seed;
    for (size_t n = 0; n < pages; n++) {
        size_t i = (seed = mix(seed + n)) % (pages + 1);
        page_is((char *)at + i * PAGE, i);
    }
    return NULL;
}

static void orders(int sharing) {
    char *at = managed(sharing);
    all(at);
    for (size_t i = pages + 1; i-- > 0;) page_is(at + i * PAGE, i);
    for (size_t start = 0; start < 7; start++)
        for (size_t i = start; i <= pages; i += 7) page_is(at + i * PAGE, i);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) pthread_create(threads + i, NULL, at_random, at);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    drop(at);
}

static int raises(const volatile char *at) {
    if (sigsetjmp(back, 1)) return 1;
    (void)*at;
    return 0;
}

static void behind_the_end(void) {
    int fd = open(path, O_RDONLY);
    char *at = mmap(NULL, bytes() + 8 * PAGE, PROT_READ, MAP_SHARED, fd, 0);
    need(!is_listed(at) && is_listed(at + (pages + 1) * PAGE), "managed up to the end of the file");
    struct sigaction action = {.sa_handler = on_bus}, former;
    sigaction(SIGBUS, &action, &former);
    need(!raises(at + pages * PAGE + PAGE - 1), "the last page");
    need(raises(at + (pages + 1) * PAGE), "SIGBUS behind it");
    need(raises(at + (pages + 7) * PAGE), "SIGBUS far behind it");
    sigaction(SIGBUS, &former, NULL);
    munmap(at, bytes() + 8 * PAGE);
    /* From a page in the middle, and only a part. */
    char *part = mmap(NULL, 600 * PAGE, PROT_READ, MAP_PRIVATE, fd, 9 * PAGE);
    need(!is_listed(part), "a part is managed");
    for (size_t i = 0; i < 600; i++) page_is(part + i * PAGE, i + 9);
    munmap(part, 600 * PAGE);
    close(fd);
}

static void rights(void) {
    char *at = managed(MAP_PRIVATE);
    all(at);
    need(mprotect(at + 8 * PAGE, 4 * PAGE, PROT_READ | PROT_WRITE) == 0, "a private mapping can be made writable");
    for (size_t i = 8; i < 12; i++) fill(at + i * PAGE, i, 2);
    for (size_t i = 0; i < pages; i++) i >= 8 && i < 12 ? holds(at + i * PAGE, i, 2) : holds(at + i * PAGE, i, 1);
    char *other = map_file(MAP_SHARED, 0);
    for (size_t i = 0; i < 32; i++) page_is(other + i * PAGE, i);
    drop(other);
    drop(at);
    at = managed(MAP_SHARED);
    errno = 0;
    need(mprotect(at, PAGE, PROT_READ | PROT_WRITE) == -1 && errno == EACCES, "no write access by a descriptor for reading");
    all(at);
    need(mprotect(at, bytes(), PROT_NONE) == 0 && mprotect(at, bytes(), PROT_READ) == 0, "no access for a while");
    all(at);
    drop(at);
    at = managed(MAP_SHARED);
    need(syscall(SYS_mprotect, at + PAGE, PAGE, PROT_READ | PROT_EXEC) == 0 && is_listed(at + PAGE), "code is the kernel's");
    need(!is_listed(at), "its neighbour is not");
    all(at);
    drop(at);
    int fd = open(path, O_RDWR);
    at = mmap(NULL, bytes(), PROT_READ, MAP_SHARED, fd, 0);
    need(is_listed(at), "a file that is open for writing stays the kernel's");
    need(mprotect(at, PAGE, PROT_READ | PROT_WRITE) == 0, "its mapping can be made writable");
    fill(at, 0, 2);
    unsigned char page[PAGE];
    need(pread(fd, page, PAGE, 0) == PAGE && holds(page, 0, 2), "what is written there reaches the file");
    fill(at, 0, 1);
    drop(at);
    close(fd);
    fd = open(path, O_RDONLY);
    at = mmap(NULL, bytes(), PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
    need(at != MAP_FAILED && is_listed(at), "an executable mapping stays the kernel's");
    drop(at);
    close(fd);
}

static void places(void) {
    char *at = managed(MAP_SHARED);
    all(at);
    need(munmap(at + 16 * PAGE, 16 * PAGE) == 0, "munmap of a part");
    for (size_t i = 0; i <= pages; i++)
        if (i < 16 || i >= 32) page_is(at + i * PAGE, i);
    char *over = mmap(at + 64 * PAGE, 64 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    need(over == at + 64 * PAGE, "MAP_FIXED over a part");
    for (size_t i = 64; i < 128; i++) { holds(at + i * PAGE, i, 0); fill(at + i * PAGE, i, 5); }
    for (size_t i = 0; i <= pages; i++) {
        if (i >= 64 && i < 128) holds(at + i * PAGE, i, 5);
        else if (i < 16 || i >= 32) page_is(at + i * PAGE, i);
    }
    drop(at);
    /* Again and again in one place: what is read for an old mapping must not show in a new one. */
    int fd = open(path, O_RDONLY);
    size_t part = 512 * PAGE;
    for (size_t round = 0; round < 64; round++) {
        size_t first = round * 37 % (pages - 512);
        char *here = mmap(NULL, part, PROT_READ, MAP_PRIVATE, fd, first * PAGE);
        for (size_t i = 0; i < 512; i += 3 + round % 5) page_is(here + i * PAGE, first + i);
        munmap(here, part);
    }
    close(fd);
    at = managed(MAP_PRIVATE);
    page_is(at, 0);
    char *moved = mremap(at, bytes(), bytes() / 2, 0);
    need(moved == at, "mremap to less");
    for (size_t i = 0; i < pages / 2; i++) page_is(moved + i * PAGE, i);
    size_t half = bytes() / 2;
    char *target = mmap(NULL, bytes(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    moved = mremap(moved, half, bytes(), MREMAP_MAYMOVE | MREMAP_FIXED, target);
    need(moved == target, "mremap to more, elsewhere");
    all(moved);
    drop(moved);
    at = managed(MAP_SHARED);
    moved = mremap(at, 0, bytes(), MREMAP_MAYMOVE);
    need(moved != MAP_FAILED && moved != at, "a second mapping by mremap");
    if (moved != MAP_FAILED) { all(moved); drop(moved); }
    all(at);
    drop(at);
}

static void advice(void) {
    int advices[] = {MADV_DONTNEED, MADV_WILLNEED, MADV_SEQUENTIAL, MADV_RANDOM, MADV_NORMAL, MADV_DONTDUMP,
                     MADV_DODUMP, MADV_HUGEPAGE, MADV_NOHUGEPAGE, MADV_COLD, MADV_PAGEOUT, 22 /* POPULATE_READ */};
    char *at = managed(MAP_SHARED);
    for (size_t i = 0; i < sizeof advices / sizeof *advices; i++) {
        for (size_t page = 0; page < 600; page++) page_is(at + page * PAGE, page);
        if (madvise(at, 512 * PAGE, advices[i])) { wrong++; fprintf(stderr, "WRONG: advice %d: %s\n", advices[i], strerror(errno)); }
        for (size_t page = 0; page < 600; page++) page_is(at + page * PAGE, page);
    }
    need(madvise(at, PAGE, MADV_FREE) == -1 && errno == EINVAL, "MADV_FREE is for anonymous memory");
    need(madvise(at, PAGE, MADV_WIPEONFORK) == -1 && errno == EINVAL, "MADV_WIPEONFORK is for anonymous memory");
    need(madvise(at, PAGE, 23 /* POPULATE_WRITE */) == -1 && errno == EINVAL, "it cannot be written");
    static unsigned char there[1 << 20];
    need(mincore(at, bytes(), there) == 0, "mincore");
    need(msync(at, bytes(), MS_SYNC) == 0 && msync(at, bytes(), MS_ASYNC) == 0, "msync");
    need(mlock(at, 64 * PAGE) == 0, "mlock");
    need(mincore(at, 64 * PAGE, there) == 0 && (there[0] & there[63] & 1), "locked pages are there");
    all(at);
    need(mincore(at, 64 * PAGE, there) == 0 && (there[0] & there[63] & 1), "and stay");
    need(munlock(at, 64 * PAGE) == 0, "munlock");
    need(!is_listed(at), "it is still managed");
    all(at);
    drop(at);
    at = map_file(MAP_PRIVATE, MAP_POPULATE);
    need(!is_listed(at), "MAP_POPULATE");
    all(at);
    drop(at);
}

static void calls(const char *folder) {
    char *at = managed(MAP_PRIVATE);
    char name[4200];
    snprintf(name, sizeof name, "%s/copy", folder);
    int fd = open(name, O_CREAT | O_TRUNC | O_RDWR, 0600);
    size_t count = 4096 * PAGE < pages * PAGE ? 4096 * PAGE : pages * PAGE;
    for (size_t done = 0; done < count;) {
        ssize_t n = write(fd, at + done, count - done);
        if (n <= 0) { need(0, "write from a mapped file"); break; }
        done += n;
    }
    unsigned char page[PAGE];
    for (size_t i = 0; i < count / PAGE; i++)
        need(pread(fd, page, PAGE, i * PAGE) == PAGE && holds(page, i, 1), "what was written");
    madvise(at, bytes(), MADV_DONTNEED);
    errno = 0;
    need(pread(fd, at, PAGE, 0) == -1 && errno == EFAULT, "no read into a mapping for reading");
    int ends[2];
    socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
    for (size_t i = 0; i < 64; i++) {
        need(send(ends[0], at + i * PAGE, PAGE, 0) == PAGE && recv(ends[1], page, PAGE, MSG_WAITALL) == PAGE, "send");
        holds(page, i, 1);
    }
    struct iovec to = {page, PAGE}, from = {at + 777 * PAGE, PAGE};
    need(process_vm_readv(getpid(), &to, 1, &from, 1, 0) == PAGE && holds(page, 777, 1), "process_vm_readv");
    close(ends[0]); close(ends[1]); close(fd);
    unlink(name);
    drop(at);
}

static void forks(void) {
    char *at = managed(MAP_SHARED), *too = managed(MAP_PRIVATE);
    for (size_t i = 0; i < pages; i += 2) page_is(at + i * PAGE, i);
    for (int n = 0; n < 3; n++) {
        if (fork() == 0) {
            checks = wrong = 0;
            all(at);
            at_random(too);
            int status = 0;
            if (fork() == 0) { checks = wrong = 0; all(too); _exit(wrong != 0); }
            wait(&status);
            /* A mapping of its own is managed again. */
            char *own = managed(MAP_SHARED);
            all(own);
            _exit(wrong != 0 || status != 0);
        }
    }
    all(too);
    at_random(at);
    for (int n = 0; n < 3; n++) {
        int status = 1;
        wait(&status);
        need(status == 0, "the child saw the file's bytes");
    }
    need(!is_listed(at), "the parent's mapping is still managed");
    drop(at);
    drop(too);
}

/* Pages of the file in the page cache. */
static size_t cached(void) {
    int fd = open(path, O_RDONLY);
    char *at = mmap(NULL, bytes(), PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
    unsigned char *there = malloc(pages + 1);
    size_t count = 0;
    need(is_listed(at) && mincore(at, bytes(), there) == 0, "mincore of the kernel's mapping");
    for (size_t i = 0; i <= pages; i++) count += there[i] & 1;
    free(there);
    munmap(at, bytes());
    close(fd);
    return count;
}

static void page_cache(void) {
    int fd = open(path, O_RDONLY);
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    close(fd);
    size_t before = cached();
    need(before < pages / 16, "nothing is in the page cache");
    char *at = managed(MAP_SHARED);
    all(at);
    at_random(at);
    if (cached() > before + pages / 16) { need(0, "the page cache stays free"); fprintf(stderr, "%zu\n", cached()); }
    drop(at);
}

static void many(void) {
    enum { MANY = 80 };
    char *at[MANY];
    int kernel = 0;
    for (int i = 0; i < MANY; i++) { at[i] = map_file(MAP_SHARED, 0); kernel += is_listed(at[i]); }
    need(kernel == MANY - 64, "64 mappings are managed at a time");
    for (int i = 0; i < MANY; i++) for (size_t page = i; page < pages; page += 997) page_is(at[i] + page * PAGE, page);
    for (int i = 0; i < MANY; i++) drop(at[i]);
    drop(managed(MAP_SHARED));
}

static void in_memory(void) {
    char name[] = "/dev/shm/pagewise-mapped.XXXXXX";
    int fd = mkstemp(name);
    need(fd >= 0 && ftruncate(fd, 4 << 20) == 0, "a file in memory");
    close(fd);
    fd = open(name, O_RDONLY);
    char *at = mmap(NULL, 4 << 20, PROT_READ, MAP_SHARED, fd, 0);
    need(is_listed(at), "a file in memory stays the kernel's");
    munmap(at, 4 << 20);
    close(fd);
    unlink(name);
}

int main(int count, char **words) {
    pages = (size_t)atoi(words[1]) * 256;
    snprintf(path, sizeof path, "%s/mapped.%d", words[2], getpid());
    (void)count;
    create();
    orders(MAP_PRIVATE);
    orders(MAP_SHARED);
    behind_the_end();
    rights();
    places();
    advice();
    calls(words[2]);
    forks();
    page_cache();
    many();
    in_memory();
    char *at = managed(MAP_PRIVATE);
    unlink(path);
    all(at);
    need(!is_listed(at), "a file without a name is managed as before");
    drop(at);
    return verdict("mapped");
}
