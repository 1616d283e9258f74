// A service under a steady load: a client sends requests over TCP at a fixed pace, the server
// receives each and sums it up.
//
//   service SECONDS [STALL]
//
// From second STALL on (none by default) memory is slow for one second, as with a module that
// corrects errors all the time: each copy out of the socket takes as long as a thousand. It is planted
// by copying the same bytes again (MSG_PEEK), so that the requests stay what they are. Prints what
// each second served.
#include <arpa/inet.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { REQUEST = 64 << 10, PACE_HZ = 1500, SLOWER = 1000 };

static double seconds, stall = -1;
static struct timespec began;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (t.tv_sec - began.tv_sec) + 1e-9 * (t.tv_nsec - began.tv_nsec);
}

static void die(const char *what) {
    perror(what);
    exit(1);
}

static void send_whole(int socket, const char *from, size_t size) {
    while (size > 0) {
        ssize_t sent = send(socket, from, size, MSG_NOSIGNAL);
        if (sent <= 0) exit(0);
        from += sent, size -= (size_t)sent;
    }
}

static void *client(void *argument) {
    static char request[REQUEST];
    int socket = *(int *)argument;
    struct timespec next = began;
    memset(request, 7, sizeof request);
    while (now() < seconds) {
        next.tv_nsec += 1000000000 / PACE_HZ;
        if (next.tv_nsec >= 1000000000) next.tv_nsec -= 1000000000, next.tv_sec++;
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
        send_whole(socket, request, sizeof request);
    }
    shutdown(socket, SHUT_WR);
    return NULL;
}

__attribute__((noinline)) static ssize_t receive(int socket, char *into) {
    double at = now();
    if (stall >= 0 && at >= stall && at < stall + 1)
        for (int copy = 1; copy < SLOWER && now() < stall + 1; copy++)
            if (recv(socket, into, REQUEST, MSG_PEEK) <= 0) break;
    return recv(socket, into, REQUEST, MSG_WAITALL);
}

__attribute__((noinline)) static uint64_t handle(const char *request, size_t size) {
    uint64_t sum = 0;
    for (size_t at = 0; at + 8 <= size; at += 8) {
        uint64_t word;
        memcpy(&word, request + at, 8);
        sum = (sum ^ word) * 0x100000001b3;
    }
    return sum;
}

static void serve(int socket) {
    static char request[REQUEST];
    volatile uint64_t sum = 0;
    long served = 0;
    for (int second = 0;;) {
        ssize_t size = receive(socket, request);
        for (; second < (int)now() && second < (int)seconds; second++, served = 0)
            printf("second %2d: %4ld requests\n", second, served), fflush(stdout);
        if (size <= 0) return;
        sum += handle(request, (size_t)size);
        served++;
    }
}

int main(int count, char **arguments) {
    if (count < 2) return fprintf(stderr, "usage: service SECONDS [STALL]\n"), 2;
    seconds = atof(arguments[1]);
    if (count > 2) stall = atof(arguments[2]);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int listening = socket(AF_INET, SOCK_STREAM, 0), sending = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listening, (void *)&address, size) || listen(listening, 1) ||
        getsockname(listening, (void *)&address, &size) || connect(sending, (void *)&address, size))
        die("loopback connection");
    int receiving = accept(listening, NULL, NULL);
    if (receiving < 0) die("accept");
    clock_gettime(CLOCK_MONOTONIC, &began);
    pthread_t thread;
    if (pthread_create(&thread, NULL, client, &sending)) die("thread");
    serve(receiving);
    return 0;
}
