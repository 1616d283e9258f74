/* Waits, and computes very little. */
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv) {
    for (int i = argc > 1 ? atoi(argv[1]) : 20; i > 0; i--) usleep(100000);
    return 0;
}
