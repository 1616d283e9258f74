/* A thread requests memory barriers on all others (membarrier(2)), as userspace RCU and some
 * allocators do. */
#include "computing.h"
#include <linux/membarrier.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv) {
    pthread_t other;
    syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0);
    pthread_create(&other, NULL, compute, NULL);
    for (long i = argc > 1 ? atol(argv[1]) : 200000; i > 0; i--)
        syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
    stop = 1;
    pthread_join(other, NULL);
    return 0;
}
