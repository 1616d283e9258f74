/* Waits for children that sleep. */
#include <sys/wait.h>
#include <unistd.h>

int main(void) {
    for (int i = 0; i < 6; i++) {
        if (fork() == 0) {
            usleep(200000);
            _exit(0);
        }
        wait(NULL);
    }
    return 0;
}
