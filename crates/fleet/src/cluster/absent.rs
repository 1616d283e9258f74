//! A build without the feature `ballista`: no cluster can be asked.

use super::{Address, Read};
use anyhow::{Result, bail};
use datafusion::physical_plan::{ExecutionPlan, SendableRecordBatchStream};
use datafusion::prelude::{SessionConfig, SessionContext};
use std::sync::Arc;
use std::time::Duration;

/// There is none.
pub enum Cluster {}

/// A query on no cluster.
pub enum Job {}

impl Cluster {
    /// Says how to get a build that can.
    pub async fn connect(address: &Address, _: SessionConfig, _: Duration) -> Result<Self> {
        bail!(
            "this pagewise-fleet cannot ask {address}: build it with cargo install --locked --path \
             crates/fleet --features ballista"
        )
    }

    /// For plans of the cluster.
    pub fn context(&self) -> &SessionContext {
        match *self {}
    }

    /// Runs a plan.
    pub async fn run(self: &Arc<Self>, _: Arc<dyn ExecutionPlan>) -> Result<Job> {
        match **self {}
    }

    /// Ends what runs.
    pub async fn cancel(&self) {
        match *self {}
    }

    /// For how long a query may run.
    pub fn patience(&self) -> Duration {
        match *self {}
    }

    /// Whether results were lost since this was asked.
    pub fn lost_results(&self) -> bool {
        match *self {}
    }
}

impl Job {
    /// The rows.
    pub fn rows(&self) -> SendableRecordBatchStream {
        match *self {}
    }

    /// What was read.
    pub async fn read(&self) -> Result<Read> {
        match *self {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::Choice;

    #[tokio::test]
    async fn a_build_without_the_client_says_how_to_get_one() {
        let Ok(Choice::Cluster(address)) = "df://box".parse() else {
            panic!("df://box is an address");
        };
        let refused = Cluster::connect(&address, SessionConfig::new(), Duration::ZERO).await;
        let told = refused.map(drop).unwrap_err().to_string();
        assert!(
            told.contains("df://box:50050") && told.contains("--features ballista"),
            "{told}"
        );
    }
}
