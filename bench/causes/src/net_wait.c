/* A client of a server that is slow to answer. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void serve(int listener) {
    char request[16];
    int peer = accept(listener, NULL, NULL);
    while (read(peer, request, sizeof request) > 0) {
        usleep(20000);
        if (write(peer, "answer", 6) != 6) break;
    }
    _exit(0);
}

int main(void) {
    struct sockaddr_in here = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t length = sizeof here;
    char answer[16];
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    bind(listener, (struct sockaddr *)&here, sizeof here);
    listen(listener, 1);
    getsockname(listener, (struct sockaddr *)&here, &length);
    if (fork() == 0) serve(listener);
    int peer = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(peer, (struct sockaddr *)&here, sizeof here) != 0) return 1;
    for (int i = 0; i < 60; i++) {
        if (write(peer, "request", 7) != 7) return 1;
        if (read(peer, answer, sizeof answer) <= 0) return 1;
    }
    return 0;
}
