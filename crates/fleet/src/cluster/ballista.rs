//! The client of a Ballista cluster.
//!
//! It submits plans by the messages of `ballista-core` rather than by that crate's
//! `execute_physical_plan`, which does not tell the job's number: without it neither what executors
//! read can be asked for nor a job cancelled. Status is polled, so that a scheduler that hangs is
//! noticed by the time limit of one request.

use super::{Address, Read, functions};
use crate::data::{in_types_of, with_views};
use anyhow::{Error, Result, anyhow, bail};
use ballista_core::client::BallistaClient;
use ballista_core::error::BallistaError;
use ballista_core::extension::{SessionConfigExt, SessionConfigHelperExt};
use ballista_core::optimizer::with_ballista_optimizer_rules;
use ballista_core::serde::protobuf::execute_query_params::Query;
use ballista_core::serde::protobuf::get_job_status_result::FlightProxy;
use ballista_core::serde::protobuf::operator_metric::Metric;
use ballista_core::serde::protobuf::scheduler_grpc_client::SchedulerGrpcClient;
use ballista_core::serde::protobuf::{
    CancelJobParams, ExecuteQueryParams, GetJobMetricsParams, GetJobStatusParams,
    PartitionLocation, execute_query_result, job_status,
};
use ballista_core::utils::{GrpcClientConfig, create_grpc_client_connection};
use ballista_core::{BALLISTA_VERSION, version};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::error::{DataFusionError, Result as Answer};
use datafusion::execution::SessionStateBuilder;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{ExecutionPlan, SendableRecordBatchStream};
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_proto::physical_plan::{AsExecutionPlan, DefaultPhysicalExtensionCodec};
use datafusion_proto::protobuf::PhysicalPlanNode;
use futures::{StreamExt, TryStreamExt, stream};
use std::error::Error as _;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::time::sleep;
use tonic::transport::Channel;
use tonic::{Code, Request, Status};

/// A scheduler that is not there is an error after this.
const CONNECT: Duration = Duration::from_secs(5);
/// As is one that does not answer a request.
const REQUEST: Duration = Duration::from_secs(20);
/// Between two looks at a job.
const POLL: Duration = Duration::from_millis(20);
/// Most bytes of a message. Schedulers take 16 MiB unless they are told otherwise.
const MESSAGE: usize = 256 << 20;
/// A connection to an executor is tried this often, with this pause.
const TRIES: u8 = 3;
const PAUSE_MS: u64 = 300;

/// A cluster that answers.
pub struct Cluster {
    address: Address,
    scheduler: SchedulerGrpcClient<Channel>,
    context: SessionContext,
    patience: Duration,
    running: Mutex<Option<String>>,
    lost: AtomicBool,
}

/// A query that the cluster has answered.
pub struct Job {
    cluster: Arc<Cluster>,
    number: String,
    /// In the order of the plan's parts.
    results: Vec<PartitionLocation>,
    proxy: Option<FlightProxy>,
    schema: SchemaRef,
}

impl Cluster {
    /// Connects to a scheduler, which proves that it is one.
    pub async fn connect(
        address: &Address,
        config: SessionConfig,
        patience: Duration,
    ) -> Result<Self> {
        let limits = GrpcClientConfig {
            connect_timeout_seconds: CONNECT.as_secs(),
            timeout_seconds: REQUEST.as_secs(),
            ..GrpcClientConfig::default()
        };
        let url = format!("http://{}:{}", address.host, address.port);
        let channel = create_grpc_client_connection(url, &limits).await;
        let channel = channel.map_err(|error| {
            anyhow!("no Ballista scheduler at {address}: {}", innermost(&error))
        })?;
        let scheduler = SchedulerGrpcClient::new(channel)
            .max_decoding_message_size(MESSAGE)
            .max_encoding_message_size(MESSAGE);
        let cluster = Self {
            address: address.clone(),
            scheduler,
            context: planning(config),
            patience,
            running: Mutex::new(None),
            lost: AtomicBool::new(false),
        };
        // The status of no job is none.
        let probe = GetJobStatusParams {
            job_id: String::new(),
        };
        match cluster.scheduler.clone().get_job_status(probe).await {
            Err(status) => Err(cluster.told(&status)),
            Ok(_) => Ok(cluster),
        }
    }

    /// For plans of the cluster.
    pub fn context(&self) -> &SessionContext {
        &self.context
    }

    /// For how long a query may run.
    pub fn patience(&self) -> Duration {
        self.patience
    }

    /// Whether results were lost since this was asked.
    pub fn lost_results(&self) -> bool {
        self.lost.swap(false, Ordering::Relaxed)
    }

    /// Runs a plan to its end.
    pub async fn run(self: &Arc<Self>, plan: Arc<dyn ExecutionPlan>) -> Result<Job> {
        let schema = plan.schema();
        let number = self.submit(plan).await?;
        *self.running() = Some(number.clone());
        let (results, proxy) = self.finished(&number).await?;
        Ok(Job {
            cluster: Arc::clone(self),
            number,
            results,
            proxy,
            schema,
        })
    }

    async fn submit(&self, plan: Arc<dyn ExecutionPlan>) -> Result<String> {
        let unknown = functions::unknown(&plan)?;
        if !unknown.is_empty() {
            let names: Vec<String> = unknown.into_iter().collect();
            bail!(
                "executors of Ballista {BALLISTA_VERSION} do not know {}: ask with --engine embedded",
                names.join(", ")
            );
        }
        let codec = DefaultPhysicalExtensionCodec {};
        let node = PhysicalPlanNode::try_from_physical_plan(plan, &codec);
        let node = node.map_err(|error| {
            let why = error.to_string();
            anyhow!(
                "a cluster cannot run this query: ask about information_schema alone, or with \
                 --engine embedded ({})",
                why.lines().next().unwrap_or_default()
            )
        })?;
        let mut message = Vec::new();
        node.try_encode(&mut message)?;
        let session = self.context.session_id();
        let mut request = Request::new(ExecuteQueryParams {
            query: Some(Query::PhysicalPlan(message)),
            settings: self.context.copied_config().to_key_value_pairs(),
            operation_id: session.clone(),
            session_id: session,
        });
        version::insert_version_header(request.metadata_mut());
        let answer = self.scheduler.clone().execute_query(request).await;
        let answer = answer.map_err(|status| self.told(&status))?;
        let theirs = version::version_from_metadata(answer.metadata()).map(str::to_owned);
        let is_alike = version::check_compatibility(Some(BALLISTA_VERSION), theirs.as_deref());
        let result = answer.into_inner().result;
        if is_alike.is_err() {
            // A scheduler that does not compare versions has queued the job.
            if let Some(execute_query_result::Result::Success(job)) = result {
                self.cancel_job(job.job_id).await;
            }
            let theirs = theirs.as_deref().unwrap_or("before 55");
            bail!(
                "{} is of version {theirs}, this program asks Ballista {BALLISTA_VERSION}: their \
                 major versions must be equal",
                self.address
            );
        }
        match result {
            Some(execute_query_result::Result::Success(job)) => Ok(job.job_id),
            Some(execute_query_result::Result::Failure(failure)) => {
                bail!("{} refuses the plan: {:?}", self.address, failure.failure)
            }
            None => bail!("{} does not say whether it runs the plan", self.address),
        }
    }

    async fn finished(
        &self,
        number: &str,
    ) -> Result<(Vec<PartitionLocation>, Option<FlightProxy>)> {
        loop {
            let job_id = number.to_owned();
            let asked = GetJobStatusParams { job_id };
            let answer = self.scheduler.clone().get_job_status(asked).await;
            let answer = answer.map_err(|status| self.told(&status))?.into_inner();
            match answer.status.and_then(|status| status.status) {
                Some(job_status::Status::Failed(failed)) => {
                    bail!(
                        "{} could not run job {number}: {}",
                        self.address,
                        failed.error
                    )
                }
                Some(job_status::Status::Successful(job)) => {
                    let mut results = job.partition_location;
                    results.sort_by_key(|part| {
                        let number = part.partition_id.as_ref().map(|id| id.partition_id);
                        (number, part.map_partition_id, part.file_id)
                    });
                    return Ok((results, answer.flight_proxy));
                }
                _ => sleep(POLL).await,
            }
        }
    }

    /// Ends what runs.
    pub async fn cancel(&self) {
        let running = self.running().take();
        if let Some(job) = running {
            self.cancel_job(job).await;
        }
    }

    async fn cancel_job(&self, job_id: String) {
        // Nothing is to be done about a scheduler that does not: the error that led here is reported.
        let _ = self
            .scheduler
            .clone()
            .cancel_job(CancelJobParams { job_id })
            .await;
    }

    fn running(&self) -> std::sync::MutexGuard<'_, Option<String>> {
        self.running
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// What it means that a request failed.
    fn told(&self, status: &Status) -> Error {
        let address = &self.address;
        let message = status.message();
        match status.code() {
            Code::Cancelled | Code::DeadlineExceeded => {
                anyhow!("{address} does not answer within {} s", REQUEST.as_secs())
            }
            // Not the answer of a server, but what became of the connection.
            _ if status.source().is_some() => anyhow!(
                "{address} does not answer as a Ballista scheduler ({})",
                innermost(status)
            ),
            Code::Unimplemented => {
                anyhow!("{address} does not answer as a Ballista scheduler ({message})")
            }
            Code::OutOfRange => anyhow!(
                "the plan is too large for {address} ({message}): start it with a larger \
                 --grpc-server-max-decoding-message-size, or ask about fewer hosts with --where"
            ),
            _ => anyhow!("{address}: {message}"),
        }
    }
}

impl Job {
    /// The rows of all parts, one part after the other.
    pub fn rows(&self) -> SendableRecordBatchStream {
        let cluster = Arc::clone(&self.cluster);
        let proxy = self.proxy.clone();
        let parts = stream::iter(self.results.clone()).then(move |part| {
            let (cluster, proxy) = (Arc::clone(&cluster), proxy.clone());
            async move {
                let rows = fetched(&cluster.address, part, proxy.as_ref()).await;
                rows.inspect_err(|_| cluster.lost.store(true, Ordering::Relaxed))
            }
        });
        let cluster = Arc::clone(&self.cluster);
        let schema = with_views(&self.schema);
        let types = Arc::clone(&schema);
        let rows = parts.try_flatten().map(move |batch| match batch {
            Ok(batch) => in_types_of(&batch, &types),
            Err(error) => {
                cluster.lost.store(true, Ordering::Relaxed);
                Err(error)
            }
        });
        Box::pin(RecordBatchStreamAdapter::new(schema, rows))
    }

    /// What executors read, from the plan's metrics.
    pub async fn read(&self) -> Result<Read> {
        let job_id = self.number.clone();
        let mut scheduler = self.cluster.scheduler.clone();
        let answer = scheduler
            .get_job_metrics(GetJobMetricsParams { job_id })
            .await;
        let answer = answer.map_err(|status| self.cluster.told(&status))?;
        let stages = answer.into_inner().stages;
        let scans = stages.iter().flat_map(|stage| &stage.operators);
        let scans = scans.filter(|operator| operator.operator_type == "DataSourceExec");
        let mut read = Read::default();
        for metric in scans.flat_map(|scan| &scan.metrics) {
            match &metric.metric {
                Some(Metric::OutputRows(rows)) => read.rows += *rows as usize,
                Some(Metric::Count(count)) => match count.name.as_str() {
                    "bytes_scanned" => read.bytes += count.value as usize,
                    "files_opened" => read.files += count.value as usize,
                    _ => {}
                },
                _ => {}
            }
        }
        Ok(read)
    }
}

/// Plans as Ballista's own client does: what works inside one process alone is off.
fn planning(config: SessionConfig) -> SessionContext {
    let state = SessionContext::new_with_config(config.upgrade_for_ballista()).state();
    let rules = with_ballista_optimizer_rules(state.optimizers());
    let state = SessionStateBuilder::new_from_existing(state);
    SessionContext::new_with_state(state.with_optimizer_rules(rules).build())
}

/// Rows of a part, from the executor that has them, or from where the scheduler says.
async fn fetched(
    scheduler: &Address,
    part: PartitionLocation,
    proxy: Option<&FlightProxy>,
) -> Answer<SendableRecordBatchStream> {
    let missing = || DataFusionError::Execution("a result without a place".to_owned());
    let layout = part.layout();
    let executor = part.executor_meta.ok_or_else(missing)?;
    let id = part.partition_id.ok_or_else(missing)?;
    let port = u16::try_from(executor.port).map_err(|_| missing())?;
    let (host, at) = match proxy {
        Some(FlightProxy::External(address)) => {
            let (host, port) = address.rsplit_once(':').ok_or_else(missing)?;
            (host.to_owned(), port.parse().map_err(|_| missing())?)
        }
        Some(FlightProxy::Local(true)) => (scheduler.host.to_string(), scheduler.port),
        Some(FlightProxy::Local(false)) | None => (executor.host.clone(), port),
    };
    let lost = |error: BallistaError| {
        DataFusionError::Execution(format!("the result is lost with {host}:{at} ({error})"))
    };
    let client =
        BallistaClient::try_new(&host, at, MESSAGE, false, None, TRIES, PAUSE_MS, 0, 0).await;
    let mut client = client.map_err(lost)?;
    let id = id.into();
    let rows = client.fetch_partition_proxied(
        &executor.id,
        &id,
        part.file_id,
        layout,
        &executor.host,
        port,
        true,
    );
    rows.await.map_err(lost)
}

fn innermost(error: &dyn std::error::Error) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}
