//! Queries on a cluster.
//!
//! What needs a file goes there as a physical plan. A query on `runs` or on the names of columns stays
//! here: both are known here alone.

use crate::cluster::{Cluster, Job, Read};
use crate::reading::reading;
use anyhow::{Context, Result, bail};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::catalog::streaming::StreamingTable;
use datafusion::datasource::physical_plan::FileScanConfig;
use datafusion::datasource::source::DataSourceExec;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use datafusion::physical_plan::{ExecutionPlan, SendableRecordBatchStream};
use datafusion::prelude::SessionContext;
use futures::{StreamExt, TryStreamExt};
use std::any::Any;
use std::fmt;
use std::sync::Arc;
use tokio::time::timeout;

/// The table of what comes back from a cluster.
pub const PARTS: &str = "parts";

/// What is asked.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// In SQL.
    pub sql: &'a str,
    /// What is left to do here.
    pub rest: Option<Rest<'a>>,
}

/// A query on partial sums. Each of a query's parts sums its own files, which hold all of a run, so
/// nothing would come of exchanging these sums between executors: they come here at once.
#[derive(Clone, Copy, Debug)]
pub struct Rest<'a> {
    /// Names of their columns.
    pub columns: [&'a str; 3],
    /// In SQL on the table of `PARTS`.
    pub sql: &'a str,
}

/// The rows, and what executors read for them.
type Answer = (Vec<RecordBatch>, Result<Read>);

/// Asks a cluster. Results that are lost with an executor are computed once more.
pub async fn answer(
    cluster: &Arc<Cluster>,
    here: &SessionContext,
    question: &Question<'_>,
) -> Result<Answer> {
    let both = async {
        let first = attempt(cluster, here, question).await;
        match first {
            Err(_) if cluster.lost_results() => attempt(cluster, here, question).await,
            first => first,
        }
    };
    match timeout(cluster.patience(), both).await {
        Ok(answer) => answer,
        Err(_) => {
            cluster.cancel().await;
            bail!(
                "the cluster has not answered within {} s: does it have executors? (--patience \
                 waits longer)",
                cluster.patience().as_secs()
            )
        }
    }
}

async fn attempt(
    cluster: &Arc<Cluster>,
    here: &SessionContext,
    question: &Question<'_>,
) -> Result<Answer> {
    let plan = cluster
        .context()
        .sql_with_options(question.sql, reading())
        .await?;
    let plan = plan.create_physical_plan().await?;
    if !reads_files(&plan) {
        let batches = match question.rest {
            Some(_) => Vec::new(),
            None => {
                here.sql_with_options(question.sql, reading())
                    .await?
                    .collect()
                    .await?
            }
        };
        return Ok((batches, Ok(Read::default())));
    }
    let Some(rest) = question.rest else {
        let job = cluster.run(plan).await?;
        let batches = job.rows().try_collect().await?;
        return Ok((batches, job.read().await));
    };
    let sums = partial_sums(&plan).context("the plan has no sums")?;
    let job = Arc::new(cluster.run(sums).await?);
    let parts = Parts::new(Arc::clone(&job), rest.columns)?;
    let table = StreamingTable::try_new(Arc::clone(&parts.schema), vec![Arc::new(parts)])?;
    here.deregister_table(PARTS)?;
    here.register_table(PARTS, Arc::new(table))?;
    let batches = here.sql(rest.sql).await?.collect().await?;
    here.deregister_table(PARTS)?;
    Ok((batches, job.read().await))
}

fn reads_files(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let is_scan = plan.downcast_ref::<DataSourceExec>().is_some_and(|scan| {
        let source: &dyn Any = scan.data_source().as_ref();
        source.is::<FileScanConfig>()
    });
    is_scan || plan.children().into_iter().any(reads_files)
}

/// The plan up to the sums of each part.
fn partial_sums(plan: &Arc<dyn ExecutionPlan>) -> Option<Arc<dyn ExecutionPlan>> {
    let is_first = plan.downcast_ref::<AggregateExec>().is_some_and(|sums| {
        use AggregateMode::{Partial, Single, SinglePartitioned};
        matches!(sums.mode(), Partial | Single | SinglePartitioned)
    });
    match is_first {
        true => Some(Arc::clone(plan)),
        false => plan.children().into_iter().find_map(partial_sums),
    }
}

/// Rows that arrive from a cluster, under names of their own.
struct Parts {
    job: Arc<Job>,
    schema: SchemaRef,
}

impl Parts {
    fn new(job: Arc<Job>, columns: [&str; 3]) -> Result<Self> {
        let found = job.rows().schema();
        if found.fields().len() != columns.len() {
            bail!("the cluster sums {} columns", found.fields().len());
        }
        let fields = found.fields().iter().zip(columns);
        let fields = fields.map(|(field, name)| Field::new(name, field.data_type().clone(), true));
        Ok(Self {
            job,
            schema: Arc::new(Schema::new(fields.collect::<Vec<_>>())),
        })
    }
}

impl fmt::Debug for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parts").finish_non_exhaustive()
    }
}

impl PartitionStream for Parts {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let schema = Arc::clone(&self.schema);
        let renamed = Arc::clone(&schema);
        let rows = self.job.rows().map(move |batch| {
            let columns = batch?.columns().to_vec();
            Ok(RecordBatch::try_new(Arc::clone(&renamed), columns)?)
        });
        Box::pin(RecordBatchStreamAdapter::new(schema, rows))
    }
}
