/* Runs a command with transparent huge pages switched off for it and its children. */
#include <sys/prctl.h>
#include <unistd.h>

int main(int argc, char **argv) {
    if (argc < 2 || prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) != 0) return 1;
    execvp(argv[1], argv + 1);
    return 127;
}
