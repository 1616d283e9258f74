// Programs that each suffer from one known bottleneck: suffer WHAT SECONDS [FILE]
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 4, PAGE = 4096 };
static const char *file;
static double seconds;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

static double end_at;
static int going(void) { return now() < end_at; }

static void die(const char *what) {
    perror(what);
    exit(1);
}

__attribute__((noinline)) static void compute(double for_seconds) {
    volatile uint64_t sum = 0;
    for (double end = now() + for_seconds; now() < end;)
        for (uint64_t at = 0; at < 10000; at++) sum += at * at;
}

static void *computing(void *unused) {
    compute(seconds);
    return unused;
}

// All threads write to one file, which takes its inode's lock each time.
static void *writing(void *unused) {
    static char block[PAGE];
    int to = open(file, O_RDWR | O_CREAT, 0600);
    if (to < 0) die(file);
    while (going())
        if (pwrite(to, block, sizeof block, 0) < 0) die("pwrite");
    return unused;
}

// Memory that is taken, touched and given back.
static void churn(size_t size) {
    char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) die("mmap");
    for (size_t at = 0; at < size; at += PAGE) memory[at] = 1;
    munmap(memory, size);
}

static void *mapping_much(void *unused) {
    while (going()) churn(32 << 20);
    return unused;
}

static void *mapping_often(void *unused) {
    while (going()) churn(4 * PAGE);
    return unused;
}

// Reads a file larger than the memory that is allowed, again and again.
static void *reading(void *unused) {
    static char block[1 << 20];
    int from = open(file, O_RDONLY);
    if (from < 0) die(file);
    while (going())
        if (read(from, block, sizeof block) <= 0) lseek(from, 0, SEEK_SET);
    return unused;
}

static void *syncing(void *unused) {
    static char block[1 << 20];
    int to = open(file, O_RDWR | O_CREAT, 0600);
    if (to < 0) die(file);
    while (going())
        if (pwrite(to, block, sizeof block, 0) < 0 || fsync(to)) die("fsync");
    return unused;
}

static int receiving, sending;

static void connect_pair(int type) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    receiving = socket(AF_INET, type, 0), sending = socket(AF_INET, type, 0);
    if (bind(receiving, (void *)&address, size)) die("bind");
    if (type == SOCK_STREAM && listen(receiving, 1)) die("listen");
    if (getsockname(receiving, (void *)&address, &size)) die("getsockname");
    if (connect(sending, (void *)&address, size)) die("connect");
    if (type == SOCK_STREAM) receiving = accept(receiving, NULL, NULL);
}

static size_t message;

static void *transmit(void *unused) {
    static char block[1 << 20];
    while (going())
        if (send(sending, block, message, MSG_NOSIGNAL) < 0) break;
    exit(0);
    return unused;
}

static void *receive(void *unused) {
    static char block[1 << 20];
    while (recv(receiving, block, message, 0) > 0) continue;
    return unused;
}

static void together(int count, void *(*work)(void *)) {
    pthread_t threads[THREADS];
    for (int at = 0; at < count; at++)
        if (pthread_create(&threads[at], NULL, work, NULL)) die("thread");
    for (int at = 0; at < count; at++) pthread_join(threads[at], NULL);
}

static void network(int type, size_t size) {
    message = size;
    connect_pair(type);
    pthread_t thread;
    if (pthread_create(&thread, NULL, receive, NULL)) die("thread");
    transmit(NULL);
}

int main(int count, char **arguments) {
    if (count < 3) return fprintf(stderr, "usage: suffer WHAT SECONDS [FILE]\n"), 2;
    const char *what = arguments[1];
    seconds = atof(arguments[2]);
    file = count > 3 ? arguments[3] : "";
    end_at = now() + seconds;
    if (!strcmp(what, "nothing")) together(1, computing);
    else if (!strcmp(what, "spinning")) together(THREADS, writing);
    else if (!strcmp(what, "page_faults")) together(1, mapping_much);
    else if (!strcmp(what, "mmap_lock")) together(THREADS, mapping_often);
    else if (!strcmp(what, "reclaim")) together(1, reading);
    else if (!strcmp(what, "cpu_throttling")) together(2, computing);
    else if (!strcmp(what, "writeback")) together(1, syncing);
    else if (!strcmp(what, "network_copy")) network(SOCK_STREAM, 1 << 20);
    else if (!strcmp(what, "softirq")) network(SOCK_DGRAM, 16);
    else return fprintf(stderr, "suffer: %s is not known\n", what), 2;
    return 0;
}
