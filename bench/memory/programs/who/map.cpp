// A map of strings that grows and shrinks.
#include <cstdlib>
#include <map>
#include <string>

int main(int, char **argv) {
    unsigned random = 1;
    for (long round = 0; round < std::atol(argv[1]); round++) {
        std::map<unsigned, std::string> map;
        for (int i = 0; i < 100000; i++) {
            random = random * 1664525 + 1013904223;
            map[random % 50000] = std::string(20 + random % 60, 'a');
            if (i % 3 == 0) map.erase(map.begin());
        }
    }
}
