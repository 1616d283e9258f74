/* Memory whose pages a thread of the program delivers (userfaultfd): each first touch wakes it, and waits. */
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PAGE = 4096, PAGES = 4096 };

static int faults;

static void *deliver(void *page)
{
    struct uffd_msg message;
    while (read(faults, &message, sizeof message) == sizeof message) {
        struct uffdio_copy copy = {.dst = message.arg.pagefault.address & ~(PAGE - 1UL), .src = (unsigned long)page, .len = PAGE};
        if (ioctl(faults, UFFDIO_COPY, &copy))
            exit(2);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? atol(argv[1]) : 12, sum = 0;
    struct uffdio_api api = {.api = UFFD_API};
    faults = syscall(SYS_userfaultfd, O_CLOEXEC);
    if (faults < 0 || ioctl(faults, UFFDIO_API, &api)) {
        perror("userfaultfd");
        return 1;
    }
    char *page = aligned_alloc(PAGE, PAGE);
    pthread_t thread;
    memset(page, 1, PAGE);
    pthread_create(&thread, NULL, deliver, page);
    for (long round = 0; round < rounds; round++) {
        char *area = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        struct uffdio_register range = {.range = {(unsigned long)area, PAGES * PAGE}, .mode = UFFDIO_REGISTER_MODE_MISSING};
        if (ioctl(faults, UFFDIO_REGISTER, &range))
            return 1;
        for (long at = 0; at < PAGES; at++)
            sum += area[at * PAGE];
        munmap(area, PAGES * PAGE);
    }
    printf("%ld\n", sum);
    return 0;
}
