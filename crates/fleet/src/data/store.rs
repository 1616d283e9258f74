//! Where tables are: a folder, or a bucket of S3 or Google Cloud Storage (or of what speaks like them).
//!
//! Access is what the environment says, as for the tools of either cloud: `AWS_ACCESS_KEY_ID`,
//! `AWS_SECRET_ACCESS_KEY`, `AWS_REGION`, `AWS_ENDPOINT_URL`, `GOOGLE_APPLICATION_CREDENTIALS`…, or the
//! role of the machine. Every request ends in time, so that a store that is away is an error.

use anyhow::{Context, Error, Result, anyhow, bail};
use bytes::Bytes;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::parquet::arrow::arrow_reader::ArrowReaderMetadata;
use datafusion::parquet::errors::ParquetError;
use datafusion::parquet::file::metadata::ParquetMetaDataReader;
use datafusion::prelude::SessionContext;
use futures::TryStreamExt;
use object_store::aws::AmazonS3Builder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::path::Path as Key;
use object_store::{BackoffConfig, GetOptions, GetRange, ObjectStore, ObjectStoreExt, RetryConfig};
use std::fs::{self, File};
use std::path::{self, Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use tokio::runtime::Handle;
use url::Url;

/// A folder or a bucket. Files have names that a user could type: a path, or `s3://bucket/key`.
#[derive(Debug)]
pub enum Store {
    /// On this machine.
    Folder(PathBuf),
    /// In an object store.
    Bucket(Bucket),
}

/// Keys below a prefix of a bucket.
#[derive(Debug)]
pub struct Bucket {
    /// `s3://bucket`.
    root: Url,
    prefix: Key,
    store: Arc<dyn ObjectStore>,
    runtime: Handle,
}

/// The end of a file, which says what it has.
pub struct Footer {
    pub metadata: ArrowReaderMetadata,
    /// Bytes of the whole file.
    pub size: u64,
}

/// Requests that wait for a distant store at the same time.
const REQUESTS: usize = 32;
/// Read at the end of an object: its metadata is there, hardly ever longer.
const END: u64 = 64 << 10;
/// A connection waits 5 s and a request 30 s, unless the environment says otherwise (object_store's
/// own limits); repeating them ends after this.
const RETRY: RetryConfig = RetryConfig {
    backoff: BackoffConfig {
        init_backoff: Duration::from_millis(100),
        max_backoff: Duration::from_secs(2),
        base: 2.0,
    },
    max_retries: 3,
    retry_timeout: Duration::from_secs(15),
};

impl Store {
    /// The folder or bucket of this name. Asks no store yet.
    pub fn open(name: &str, runtime: Handle) -> Result<Self> {
        let Some((scheme, _)) = name.split_once("://") else {
            return Ok(Self::Folder(PathBuf::from(name)));
        };
        let url = Url::parse(name).with_context(|| format!("{name} is no URL"))?;
        let store: Arc<dyn ObjectStore> = match scheme {
            "s3" => Arc::new(amazon(&url)?),
            "gs" => Arc::new(google(&url)?),
            _ => {
                bail!(
                    "tables are in a folder, s3://BUCKET/PREFIX or gs://BUCKET/PREFIX, not in {name}"
                )
            }
        };
        Ok(Self::Bucket(Bucket {
            prefix: Key::from_url_path(url.path())?,
            root: Url::parse(&format!("{scheme}://{}", url.authority()))?,
            store,
            runtime,
        }))
    }

    /// All files below, as the folders between and the name, without an order.
    pub fn files(&self) -> Result<Vec<(Vec<String>, String)>> {
        match self {
            Self::Folder(root) => {
                let mut found = Vec::new();
                walk(root, &mut Vec::new(), &mut found)
                    .with_context(|| format!("cannot read {}", root.display()))?;
                Ok(found)
            }
            Self::Bucket(bucket) => bucket.files(),
        }
    }

    /// The folders that the user named.
    pub fn root(&self) -> Vec<String> {
        match self {
            Self::Folder(root) => {
                let parts = root.iter().map(|part| part.to_string_lossy().into_owned());
                parts.collect()
            }
            Self::Bucket(bucket) => bucket.folders(),
        }
    }

    /// The name of a file in these folders.
    pub fn path(&self, folders: &[String], name: &str) -> String {
        let parts = folders.iter().map(String::as_str).chain([name]);
        match self {
            Self::Folder(root) => {
                let mut path = root.clone();
                path.extend(parts);
                path.to_string_lossy().into_owned()
            }
            Self::Bucket(bucket) => {
                let mut key = bucket.folders();
                key.extend(parts.map(str::to_owned));
                format!("{}/{}", bucket.name(), key.join("/"))
            }
        }
    }

    /// The same file for the engine.
    pub fn key(&self, path: &str) -> Result<Key> {
        match self {
            Self::Folder(_) => Ok(Key::from_absolute_path(path::absolute(path)?)?),
            Self::Bucket(bucket) => bucket.key(path),
        }
    }

    /// Where the engine finds such keys.
    pub fn engine_url(&self) -> Result<ObjectStoreUrl> {
        match self {
            Self::Folder(_) => Ok(ObjectStoreUrl::local_filesystem()),
            Self::Bucket(bucket) => Ok(ObjectStoreUrl::parse(&bucket.root)?),
        }
    }

    /// Lets the engine read it.
    pub fn register(&self, context: &SessionContext) {
        if let Self::Bucket(bucket) = self {
            context.register_object_store(&bucket.root, Arc::clone(&bucket.store));
        }
    }

    /// Threads that read its files at the same time: as many as there are CPUs, or as it takes to wait
    /// for a distant store.
    pub fn readers(&self) -> usize {
        match self {
            Self::Folder(_) => thread::available_parallelism().map_or(1, |n| n.get()),
            Self::Bucket(_) => REQUESTS,
        }
    }

    /// The content of a file.
    pub fn read(&self, path: &str) -> Result<Bytes> {
        match self {
            Self::Folder(_) => Ok(fs::read(path)?.into()),
            Self::Bucket(bucket) => {
                let key = bucket.key(path)?;
                let content = async { bucket.store.get(&key).await?.bytes().await };
                let content = bucket.runtime.block_on(content);
                content.map_err(|error| bucket.explained(error))
            }
        }
    }

    /// Writes a file, whole or not at all.
    pub fn write(&self, path: &str, content: Bytes) -> Result<()> {
        let Self::Bucket(bucket) = self else {
            bail!("{path} is in a folder: copy it")
        };
        let key = bucket.key(path)?;
        let put = bucket.store.put(&key, content.into());
        let put = bucket.runtime.block_on(put);
        put.map(drop).map_err(|error| bucket.explained(error))
    }

    /// The end of a Parquet file.
    pub fn footer(&self, path: &str) -> Result<Footer> {
        match self {
            Self::Folder(_) => {
                let file = File::open(path)?;
                Ok(Footer {
                    size: file.metadata()?.len(),
                    metadata: ArrowReaderMetadata::load(&file, Default::default())?,
                })
            }
            Self::Bucket(bucket) => bucket.footer(&bucket.key(path)?),
        }
    }
}

/// Files below a folder.
fn walk(
    path: &Path,
    folders: &mut Vec<String>,
    found: &mut Vec<(Vec<String>, String)>,
) -> Result<()> {
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let name = entry.file_name();
        // A name that is no text is none of ours.
        let Some(name) = name.to_str() else { continue };
        if entry.file_type()?.is_dir() {
            folders.push(name.to_owned());
            walk(&entry.path(), folders, found)?;
            folders.pop();
        } else {
            found.push((folders.clone(), name.to_owned()));
        }
    }
    Ok(())
}

impl Bucket {
    fn name(&self) -> &str {
        self.root.as_str().trim_end_matches('/')
    }

    fn folders(&self) -> Vec<String> {
        let parts = self.prefix.parts();
        parts.map(|part| part.as_ref().to_owned()).collect()
    }

    fn key(&self, path: &str) -> Result<Key> {
        let key = path.strip_prefix(self.name());
        let key = key.ok_or_else(|| anyhow!("{path} is not in {}", self.name()))?;
        Ok(Key::parse(key.trim_start_matches('/'))?)
    }

    fn files(&self) -> Result<Vec<(Vec<String>, String)>> {
        let listed = self.store.list(Some(&self.prefix)).try_collect::<Vec<_>>();
        let listed = self.runtime.block_on(listed);
        let listed = listed.map_err(|error| self.explained(error))?;
        let files = listed.iter().filter_map(|object| {
            let below = object.location.prefix_match(&self.prefix)?;
            let mut parts: Vec<String> = below.map(|part| part.as_ref().to_owned()).collect();
            let name = parts.pop()?;
            Some((parts, name))
        });
        Ok(files.collect())
    }

    fn footer(&self, key: &Key) -> Result<Footer> {
        let mut wanted = END;
        loop {
            let options = GetOptions {
                range: Some(GetRange::Suffix(wanted)),
                ..GetOptions::default()
            };
            let end = async {
                let result = self.store.get_opts(key, options).await?;
                let size = result.meta.size;
                Ok::<_, object_store::Error>((size, result.bytes().await?))
            };
            let end = self.runtime.block_on(end);
            let (size, end) = end.map_err(|error| self.explained(error))?;
            let mut reader = ParquetMetaDataReader::new();
            match reader.try_parse_sized(&end, size) {
                Err(ParquetError::NeedMoreData(more)) if (wanted as usize) < more => {
                    wanted = more as u64;
                }
                parsed => {
                    parsed?;
                    let metadata = Arc::new(reader.finish()?);
                    let metadata = ArrowReaderMetadata::try_new(metadata, Default::default())?;
                    return Ok(Footer { metadata, size });
                }
            }
        }
    }

    /// What happened, and what to look at, in one line. Stores answer with pages of XML, and the library
    /// repeats them on each level.
    fn explained(&self, error: object_store::Error) -> Error {
        let mut innermost: &dyn std::error::Error = &error;
        while let Some(source) = innermost.source() {
            innermost = source;
        }
        let told = innermost.to_string();
        let said = |words: &[&str]| words.iter().any(|word| told.contains(word));
        let name = self.name();
        let (account, address) = match self.root.scheme() {
            "gs" => ("GOOGLE_APPLICATION_CREDENTIALS", "the network"),
            _ => (
                "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_REGION",
                "the network and AWS_ENDPOINT_URL",
            ),
        };
        let why = match () {
            () if said(&["NoSuchBucket"]) => format!("there is no bucket {name}"),
            () if said(&["404 Not Found", "NoSuchKey"]) => format!("{name} has no such object"),
            () if said(&["401 Unauthorized", "403 Forbidden"]) => {
                format!("{name} refuses access: look at {account}")
            }
            () => format!("{name} cannot be reached: look at {address}, and at {account}"),
        };
        let short = told.split(": <?xml").next().unwrap_or(&told);
        anyhow!("{why} ({})", short.lines().next().unwrap_or(short))
    }
}

fn amazon(url: &Url) -> Result<impl ObjectStore> {
    let builder = AmazonS3Builder::from_env();
    Ok(builder.with_url(url.as_str()).with_retry(RETRY).build()?)
}

fn google(url: &Url) -> Result<impl ObjectStore> {
    let builder = GoogleCloudStorageBuilder::from_env();
    Ok(builder.with_url(url.as_str()).with_retry(RETRY).build()?)
}
