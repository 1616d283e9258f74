// Sums of matrices by operators that return by value: 48 MiB temporaries, single thread.
#include <cstdio>
#include <cstdlib>
#include <vector>

using Matrix = std::vector<double>;

static Matrix operator+(const Matrix &a, const Matrix &b) {
    Matrix r(a.size());
    for (std::size_t i = 0; i < a.size(); i++) r[i] = a[i] + b[i];
    return r;
}

static Matrix scaled(const Matrix &a, double k) {
    Matrix r(a.size());
    for (std::size_t i = 0; i < a.size(); i++) r[i] = a[i] * k;
    return r;
}

int main(int argc, char **argv) {
    const int steps = argc > 1 ? std::atoi(argv[1]) : 15;
    Matrix a(6u << 20, 1.0), b(6u << 20, 0.5);
    for (int s = 0; s < steps; s++) a = scaled(a + b, 0.5);
    std::printf("%f\n", a[12345]);
}
