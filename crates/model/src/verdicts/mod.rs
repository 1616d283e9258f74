//! The answers of documents whose evidence alone gives them. Where an analysis decides more than
//! the evidence holds, it writes the verdict itself.

mod allocators;
mod faults;
mod memory;
mod page_sizes;
mod paging;
mod traced;
mod tuning;
