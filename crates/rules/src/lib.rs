//! Rules, tables and texts are data: TOML files next to the code that uses them, all read here.
#![forbid(unsafe_code)]

mod rule_file;
mod template;

pub use rule_file::{Content, Mistake, RuleError, RuleFile, read};
pub use template::Template;
