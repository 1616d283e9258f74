/* Sends itself a signal again and again. */
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

static volatile long caught;

static void count(int signal) { caught += signal != 0; }

int main(int argc, char **argv) {
    signal(SIGUSR1, count);
    for (long i = argc > 1 ? atol(argv[1]) : 900000; i > 0; i--) kill(getpid(), SIGUSR1);
    return caught == 0;
}
