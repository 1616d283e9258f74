// A server whose heap shrinks and grows with each request, and its client.
//
//   served serve [leave|die|silent]   listens on a port chosen by the kernel; writes its process id
//                                     to `starts`, one line per start. `leave` ends with status 3
//                                     before it listens, `die` by SIGKILL at its second request,
//                                     `silent` never listens.
//   served child                      the same as `serve`, in a child that this process waits for.
//   served ask COUNT                  sends COUNT requests to the server at PAGEWISE_PORT.
#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BLOCKS = 64, BLOCK = 100 << 10 };

static void answer(void) {
    char *blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) memset(blocks[i] = malloc(BLOCK), i, BLOCK);
    for (int i = BLOCKS - 1; i >= 0; i--) free(blocks[i]);
}

static int serve(const char *how) {
    FILE *starts = fopen("starts", "a");
    if (!starts) return 2;
    fprintf(starts, "%d\n", getpid());
    fclose(starts);
    if (!strcmp(how, "leave")) return 3;
    if (!strcmp(how, "silent")) for (;;) pause();
    // The first block that is freed raises the threshold for mappings of their own.
    free(malloc(4 * BLOCK));
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int server = socket(AF_INET, SOCK_STREAM, 0), asked = 0;
    if (bind(server, (struct sockaddr *)&at, sizeof at) || listen(server, 8)) return 2;
    for (;;) {
        int client = accept(server, 0, 0);
        char request;
        while (client >= 0 && read(client, &request, 1) == 1) {
            if (!strcmp(how, "die") && ++asked == 2) raise(SIGKILL);
            answer();
            if (write(client, ".", 1) != 1) break;
        }
        close(client);
    }
}

static int ask(const char *port, long count) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (!port) return 4;
    at.sin_port = htons((unsigned short)atoi(port));
    int server = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(server, (struct sockaddr *)&at, sizeof at)) return 5;
    for (long i = 0; i < count; i++) {
        char reply;
        if (write(server, "?", 1) != 1 || read(server, &reply, 1) != 1) return 6;
    }
    return 0;
}

int main(int argc, char **argv) {
    signal(SIGPIPE, SIG_IGN);
    const char *what = argc > 1 ? argv[1] : "", *how = argc > 2 ? argv[2] : "";
    if (!strcmp(what, "ask")) return ask(getenv("PAGEWISE_PORT"), atol(how));
    if (!strcmp(what, "child") && fork()) return wait(0) < 0;
    return serve(how);
}
