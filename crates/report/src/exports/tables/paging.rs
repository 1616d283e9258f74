//! Runs under user-level paging.

use super::{Tables, schema};
use crate::exports::parquet::Value;
use pagewise_model::paged_run::PagedRun;
use pagewise_model::paging::PagingTimeline;
use std::io;

/// A row per process.
pub(super) fn write_processes(run: &PagedRun, tables: &mut Tables) -> io::Result<()> {
    tables.table("paging", schema::PAGING, |rows| {
        for process in &run.processes {
            let (faults, pages) = (&process.faults, &process.pages);
            rows.of_run(&[
                Value::OptionalText(Some(&process.name)),
                Value::Optional(None),
                Value::Text(&run.policy),
                Value::Integer(process.limit_bytes),
                Value::Integer(process.resident_bytes),
                Value::Integer(process.unmanaged_bytes),
                Value::Integer(process.store_disk_bytes + process.store_memory_bytes),
                Value::Integer(faults.first_touches),
                Value::Integer(faults.refaults),
                Value::Integer(pages.read),
                Value::Integer(pages.prefetched),
                Value::Integer(pages.written),
                Value::Integer(pages.evicted),
                Value::Integer(faults.throttled_ns),
            ])?;
        }
        Ok(())
    })
}

/// A row per moment.
pub(super) fn write_course(timeline: &PagingTimeline, tables: &mut Tables) -> io::Result<()> {
    tables.table("paging", schema::PAGING, |rows| {
        for point in &timeline.points {
            rows.of_run(&[
                Value::OptionalText(None),
                Value::Optional(Some(point.time.0)),
                Value::Text(&timeline.policy),
                Value::Integer(point.limit_bytes),
                Value::Integer(point.resident_bytes),
                Value::Integer(point.unmanaged_bytes),
                Value::Integer(point.store_bytes),
                Value::Integer(point.first_touches),
                Value::Integer(point.refaults),
                Value::Integer(point.pages_read),
                Value::Integer(point.pages_read_ahead),
                Value::Integer(point.pages_written),
                Value::Integer(point.pages_evicted),
                Value::Integer(point.throttled_ns),
            ])?;
        }
        Ok(())
    })
}
