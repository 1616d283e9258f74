/* Ends after about 25 ms, a large part of them in page faults: too short for anything to be costly.
 */
#include <stdlib.h>
#include <string.h>

int main(void) {
    for (int i = 0; i < 6; i++) {
        size_t size = 6u << 20;
        char *data = malloc(size + (size_t)i);
        memset(data, 1, size);
        if (data[size / 2] != 1) return 1;
        volatile double x = 1;
        for (int k = 0; k < 600000; k++) x = x * 1.0000001;
    }
    return 0;
}
