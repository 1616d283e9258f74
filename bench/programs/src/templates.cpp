// Input that keeps the compiler busy: standard containers, regular expressions, formatting.
#include <algorithm>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>

template <int N> struct Table {
    std::map<std::string, std::vector<int>> rows;
    void add(const std::string &key) { rows[key].push_back(N); Table<N - 1>().add(key); }
};
template <> struct Table<0> { void add(const std::string &) {} };

std::string report(const std::string &text) {
    static const std::regex word("([A-Za-z]+)|([0-9]+)");
    std::unordered_map<std::string, int> counts;
    for (std::sregex_iterator i(text.begin(), text.end(), word), end; i != end; ++i) counts[i->str()]++;
    std::vector<std::pair<std::string, int>> sorted(counts.begin(), counts.end());
    std::sort(sorted.begin(), sorted.end(), [](auto &a, auto &b) { return a.second > b.second; });
    std::ostringstream out;
    for (auto &[key, count] : sorted) { out << key << ' ' << count << '\n'; Table<12>().add(key); }
    return out.str();
}
