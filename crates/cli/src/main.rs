//! `pagewise`: finds out why a Linux program loses time in memory management, and fixes it.

fn main() {
    println!("pagewise {}", env!("CARGO_PKG_VERSION"));
}
