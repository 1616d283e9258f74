//! Transactions on a database, like sysbench's OLTP on InnoDB.
//!
//! Rows are chosen like sysbench's `special` distribution: three quarters of them out of 1 % of all
//! keys. Pages are in the buffer pool wherever a frame was free, so that the hot ones are spread
//! over all of it: a few hundred small pages, but every huge page. Between rows the server works in
//! its own memory.

use super::{BASE, Workload, below, btree, shuffled_below};
use pagewise_stats::Random;

const LINE: u64 = 64;
/// Memory of the server's sessions: parsing, sorting, sending.
const SESSION: u64 = 6 << 20;
/// The log, written in order repeatedly.
const LOG: u64 = 16 << 20;
const HOT_SHARE: u64 = 100;

/// The OLTP mix.
pub struct Oltp {
    random: Random,
    pages: u64,
    seed: u64,
    step: u32,
    frame: u64,
    log: u64,
}

/// Accesses of one statement.
const STATEMENT: u32 = 24;

impl Oltp {
    /// With a buffer pool of at most `bytes`.
    #[must_use]
    pub fn new(bytes: u64, seed: u64) -> Self {
        Self {
            random: Random::seeded(seed),
            pages: (bytes / btree::NODE).max(256),
            seed,
            step: 0,
            frame: 0,
            log: 0,
        }
    }

    fn pool(&self) -> u64 {
        BASE + SESSION + LOG
    }

    fn choose_page(&mut self) -> u64 {
        let pages = self.pages;
        let page = if below(self.random.bits(), 4) < 3 {
            // The hot keys are neighbours in the middle of the table.
            pages / 2 + below(self.random.bits(), pages / HOT_SHARE)
        } else {
            below(self.random.bits(), pages)
        };
        shuffled_below(page, pages, self.seed)
    }

    fn access(&mut self) -> u64 {
        let step = self.step;
        self.step = (step + 1) % STATEMENT;
        match step {
            // The row's page: header, directory, two probes, the row.
            0 => {
                self.frame = self.pool() + self.choose_page() * btree::NODE;
                self.frame
            }
            1 => self.frame + btree::NODE - LINE,
            2..=4 => {
                let lines = btree::NODE / LINE;
                self.frame + below(self.random.bits(), lines) * LINE
            }
            5 => {
                self.log = (self.log + LINE) % LOG;
                BASE + SESSION + self.log
            }
            _ => BASE + below(self.random.bits(), SESSION / LINE) * LINE,
        }
    }
}

impl Workload for Oltp {
    fn name(&self) -> &'static str {
        "oltp"
    }

    fn memory(&self) -> Vec<(u64, u64)> {
        vec![(BASE, SESSION + LOG + btree::NODE * self.pages)]
    }

    fn fill(&mut self, out: &mut [u64]) {
        for address in out {
            *address = self.access();
        }
    }
}
