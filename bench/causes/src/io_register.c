/* Registers its buffer with io_uring for each request, and takes it back: the kernel pins all of its pages each time. */
#include <linux/io_uring.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? atol(argv[1]) : 400, bytes = 16L << 20, sum = 0;
    struct io_uring_params parameters = {0};
    int ring = syscall(SYS_io_uring_setup, 8, &parameters);
    if (ring < 0) {
        perror("io_uring_setup");
        return 1;
    }
    struct iovec buffer = {aligned_alloc(4096, bytes), bytes};
    memset(buffer.iov_base, 1, bytes);
    for (long round = 0; round < rounds; round++) {
        if (syscall(SYS_io_uring_register, ring, IORING_REGISTER_BUFFERS, &buffer, 1)) {
            perror("io_uring_register");
            return 1;
        }
        for (long at = 0; at < bytes; at += 65536)
            sum += ((char *)buffer.iov_base)[at];
        syscall(SYS_io_uring_register, ring, IORING_UNREGISTER_BUFFERS, NULL, 0);
    }
    printf("%ld\n", sum);
    return 0;
}
