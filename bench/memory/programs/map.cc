// An ordered map of strings, of which nine in ten are erased; what is left stays until the end.
#include <map>
#include <string>

int main()
{
	auto *all = new std::map<unsigned, std::string>;
	unsigned seed = 1;
	for (unsigned i = 0; i < 400000; i++) {
		seed = seed * 1664525u + 1013904223u;
		(*all)[seed] = std::string(20 + seed % 200, 'x');
	}
	unsigned number = 0;
	for (auto at = all->begin(); at != all->end();)
		at = ++number % 10 != 0 ? all->erase(at) : std::next(at);
	return 0;
}
