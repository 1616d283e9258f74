//! A table that is used all the time next to a file's worth of data that is read once: the program
//! declares this, and works just as well without the pager.
//!
//!   cargo build --release -p pagewise-pager --features hints --example hints
//!   pagewise run --memory 48M --min-region 1M --stats -- target/release/examples/hints
#![allow(clippy::print_stdout, reason = "an example says what it found")]

use pagewise_pager::hints::{self, Role};

fn main() -> std::io::Result<()> {
    let mut table = vec![0_u64; 1 << 20];
    let mut data = vec![0_u32; 24 << 20];
    hints::declare(&table, Role::Hot)?;
    hints::declare(&data, Role::Stream)?;
    for (place, number) in data.iter_mut().zip(0_u32..) {
        *place = number.wrapping_mul(2_654_435_761) >> 12;
    }
    hints::keep(&table)?;
    for &number in &data {
        table[number as usize] += 1;
    }
    hints::let_go(&table)?;
    hints::send_away(&data)?;
    hints::read_ahead(&data[..1 << 18])?;
    let counted: u64 = table.iter().sum();
    println!("{counted} of {} counted", data.len());
    assert_eq!(counted, data.len() as u64);
    Ok(())
}
