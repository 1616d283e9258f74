//! The page about huge pages of running programs.

use super::{Error, encode, generator, page};
use pagewise_model::balance::Balance;
use serde::Serialize;

/// The data as the page expects them (`web/src/data/hugeBalance.ts`).
#[derive(Serialize)]
struct HugeBalancePage<'a> {
    kind: &'static str,
    generator: String,
    balance: &'a Balance,
}

/// The page about a run of the controller; `text` is what a browser without scripts shows.
///
/// # Errors
/// Only if the result could not be encoded, which the model's types rule out.
pub fn render_huge_balance(found: &Balance, text: &str) -> Result<String, Error> {
    let data = encode(&HugeBalancePage {
        kind: "huge_balance",
        generator: generator(),
        balance: found,
    })?;
    Ok(page(&data, text))
}
