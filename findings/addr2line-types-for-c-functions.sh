#!/usr/bin/env bash
# addr2line 0.27.0 (the program of the Rust crate), -f -C: functions of C that are called f, d, x and Pc are named float, double,
# long long and char*. Its demangler, cpp_demangle 0.5, takes mangled names of types as well as of functions, and
# `demangle_auto` gives it every name that is not Rust's. binutils' addr2line demangles only what starts with _Z. Whoever
# folds stacks by such names gets frames that no search for the function finds.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
command -v cargo >/dev/null || { echo "needs cargo"; exit 2; }
cargo install --quiet --locked --root "$work" --features bin addr2line@0.27.0
bin/addr2line --version
cat > short.c <<'C'
int f(int n) { return n * 3; }
int d(int n) { return n * 5; }
int x(int n) { return n * 7; }
int Pc(int n) { return n * 9; }
int main(int n, char **words) { return words[0][0] + f(n) + d(n) + x(n) + Pc(n); }
C
cc -g -O0 short.c -o short
named() {
    for function in f d x Pc; do
        "$1" -f -C -e short "0x$(nm short | awk -v name=$function '$3 == name { print $1 }')" | sed -n 1p
    done | tr '\n' ' '
}
binutils=$(named addr2line) crate=$(named bin/addr2line)
printf 'binutils: %s\nthe crate: %s\n' "$binutils" "$crate"
[ "$binutils" = "f d x Pc " ] || { echo "binutils changed"; exit 1; }
[ "$crate" = "float double long long char* " ] || { echo "changed"; exit 1; }
echo "as found: functions are named as types"
