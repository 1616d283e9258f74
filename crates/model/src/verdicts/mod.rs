//! The answers of documents whose evidence alone gives them. Where an analysis decides more than
//! the evidence holds, it writes the verdict itself.

pub mod allocators;
pub mod faults;
pub mod memory;
pub mod page_sizes;
pub mod paging;
pub mod traced;
pub mod tuning;
