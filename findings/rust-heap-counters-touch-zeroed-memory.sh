#!/usr/bin/env bash
# peak_alloc 0.3.0, allocation-counter 0.8.1, dhat 0.3.3 (crates that count a Rust program's allocations), x86-64 Linux: none of them passes
# GlobalAlloc::alloc_zeroed on, so its default, alloc and a write of all zeros, stands in for calloc. vec![0; 256 MiB] takes 1 page
# fault alone and 65,537 with any of the three: the memory that is measured is memory that measuring made resident. The first two
# do not pass realloc on either: a vector of 64 MiB that grows is copied (16,385 faults) where mremap moves its pages (0). In
# allocation-counter a dependency is enough. cap 0.1.2 and stats_alloc 0.1.10 pass both on. Documented by none of the three.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
mkdir -p src/bin
cat > Cargo.toml <<'T'
[package]
name = "counted"
version = "0.1.0"
edition = "2021"
[dependencies]
allocation-counter = "=0.8.1"
cap = "=0.1.2"
dhat = "=0.3.3"
peak_alloc = "=0.3.0"
stats_alloc = "=0.1.10"
T
cat > src/faults.rs <<'R'
fn faults() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    stat.rsplit(") ").next().unwrap().split(' ').nth(7).unwrap().parse().unwrap()
}

fn main() {
    let start = faults();
    std::hint::black_box(vec![0_u8; 256 << 20]);
    let zeroed = faults() - start;
    let mut bytes = vec![1_u8; 64 << 20];
    std::hint::black_box(&bytes);
    let start = faults();
    bytes.reserve_exact(128 << 20);
    std::hint::black_box(&bytes);
    println!("{zeroed} {}", faults() - start);
}
R
# program NAME LINES : counts with the allocator of these lines
program() { { printf '%s\n' "$2"; echo 'include!("../faults.rs");'; } > "src/bin/$1.rs"; }
program alone ''
program allocation-counter 'use allocation_counter as _;'
program cap '#[global_allocator] static IT: cap::Cap<std::alloc::System> = cap::Cap::new(std::alloc::System, usize::MAX);'
program dhat '#[global_allocator] static IT: dhat::Alloc = dhat::Alloc;'
program peak_alloc '#[global_allocator] static IT: peak_alloc::PeakAlloc = peak_alloc::PeakAlloc;'
program stats_alloc '#[global_allocator] static IT: &stats_alloc::StatsAlloc<std::alloc::System> = &stats_alloc::INSTRUMENTED_SYSTEM;'
cargo build --release --quiet || { echo "the crates are not served here, or cargo is missing"; exit 2; }
# expect NAME ZEROED GROWN : 1 where the pages fault, 0 where at most a few do (huge pages take a fault for 2 MiB)
expect() {
    read -r zeroed grown < <("target/release/$1")
    echo "$1: $zeroed faults of a zeroed vector of 65,536 pages, $grown of one of 16,384 pages that grows"
    [ $((zeroed >= 100)) = "$2" ] && [ $((grown >= 30)) = "$3" ] || { echo "changed: $1"; exit 1; }
}
expect alone 0 0
expect cap 0 0
expect stats_alloc 0 0
expect dhat 1 0
expect peak_alloc 1 1
expect allocation-counter 1 1
echo "as found: three of five make zeroed memory resident, two of them copy what grows"
