//! Rows of a watched process tree.

use crate::answer::{Evidence, Kind};
use crate::timeline::TimelinePoint;
use crate::units::Nanos;
use serde::{Deserialize, Serialize};

/// One row. Counters are cumulative; rates are since the row before.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Row {
    /// Seconds since watching began.
    pub time_s: f64,
    /// Virtual size in bytes.
    pub vsize_bytes: u64,
    /// Resident memory in bytes.
    pub rss_bytes: u64,
    /// Proportional set size in bytes; absent where it was not read at this point, since it is costly.
    pub pss_bytes: Option<u64>,
    /// Swapped out, in bytes.
    pub swap_bytes: u64,
    /// Minor faults in total.
    pub minor_faults: u64,
    /// Major faults in total.
    pub major_faults: u64,
    /// Minor faults per second.
    pub minor_faults_per_s: f64,
    /// Major faults per second.
    pub major_faults_per_s: f64,
    /// User CPU seconds so far.
    pub user_s: f64,
    /// System CPU seconds so far.
    pub system_s: f64,
    /// Processes alive.
    pub processes: u32,
    /// Threads alive.
    pub threads: u32,
}

impl Evidence for Row {
    const KIND: Kind = Kind::Watch;
}

/// Names of the columns, in the order of [`Row::csv`].
pub const HEADER: &str = "time_s,vsize_bytes,rss_bytes,pss_bytes,swap_bytes,minor_faults,major_faults,\
                      minor_faults_per_s,major_faults_per_s,user_s,system_s,processes,threads";

impl Row {
    /// The row of `point`, with rates since `before`.
    #[must_use]
    pub fn between(before: &TimelinePoint, point: &TimelinePoint) -> Self {
        let elapsed = point.time - before.time;
        Self {
            time_s: point.time.as_secs_f64(),
            vsize_bytes: point.vsize.0,
            rss_bytes: point.rss.0,
            pss_bytes: point.pss.map(|pss| pss.0),
            swap_bytes: point.swap.0,
            minor_faults: point.minor_faults,
            major_faults: point.major_faults,
            minor_faults_per_s: rate(point.minor_faults, before.minor_faults, elapsed),
            major_faults_per_s: rate(point.major_faults, before.major_faults, elapsed),
            user_s: point.user.as_secs_f64(),
            system_s: point.system.as_secs_f64(),
            processes: point.processes,
            threads: point.threads,
        }
    }

    /// Its values, separated by commas.
    #[must_use]
    pub fn csv(&self) -> String {
        let pss = self
            .pss_bytes
            .map(|pss| pss.to_string())
            .unwrap_or_default();
        format!(
            "{:.6},{},{},{pss},{},{},{},{:.1},{:.1},{:.2},{:.2},{},{}",
            self.time_s,
            self.vsize_bytes,
            self.rss_bytes,
            self.swap_bytes,
            self.minor_faults,
            self.major_faults,
            self.minor_faults_per_s,
            self.major_faults_per_s,
            self.user_s,
            self.system_s,
            self.processes,
            self.threads
        )
    }
}

/// Growth per second; 0 at the first point, where no time has passed.
fn rate(now: u64, before: u64, elapsed: Nanos) -> f64 {
    match elapsed.0 {
        0 => 0.0,
        _ => now.saturating_sub(before) as f64 / elapsed.as_secs_f64(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Bytes;

    fn points() -> [TimelinePoint; 2] {
        let first = TimelinePoint {
            time: Nanos(0),
            minor_faults: 10,
            ..TimelinePoint::default()
        };
        let second = TimelinePoint {
            time: Nanos(500_000_000),
            vsize: Bytes(8192),
            rss: Bytes(4096),
            pss: Some(Bytes(2048)),
            minor_faults: 60,
            user: Nanos(20_000_000),
            processes: 1,
            threads: 3,
            ..TimelinePoint::default()
        };
        [first, second]
    }

    #[test]
    fn csv_has_a_value_for_each_column() {
        let [first, second] = points();
        let row = Row::between(&first, &second).csv();
        assert_eq!(
            row,
            "0.500000,8192,4096,2048,0,60,0,100.0,0.0,0.02,0.00,1,3"
        );
        assert_eq!(row.split(',').count(), HEADER.split(',').count());
        let without_pss = Row::between(&second, &first).csv();
        assert_eq!(without_pss.split(',').count(), HEADER.split(',').count());
    }

    #[test]
    fn json_has_the_columns_of_the_csv() {
        let [first, second] = points();
        let json = serde_json::to_value(Row::between(&first, &second)).unwrap();
        let mut names: Vec<&str> = json
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect();
        let mut columns: Vec<&str> = HEADER.split(',').collect();
        names.sort_unstable();
        columns.sort_unstable();
        assert_eq!(names, columns);
    }
}
