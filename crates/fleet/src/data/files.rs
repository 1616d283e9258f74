//! A table of files for the engine.
//!
//! Which files, and how large they are, is known already: the engine asks the store for nothing but
//! their content. Each file goes to one thread as a whole, in the order of the files.

use super::local::{Local, Own};
use super::{Seen, Store, Usable, arrow_schema};
use anyhow::Result;
use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Result as Answer;
use datafusion::datasource::TableType;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfigBuilder, ParquetSource};
use datafusion::datasource::source::DataSourceExec;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::logical_expr::Expr;
use datafusion::physical_plan::ExecutionPlan;
use pagewise_report::exports::parquet::Column;
use std::path::PathBuf;
use std::sync::Arc;

/// Files of one table.
#[derive(Debug)]
pub struct Files {
    schema: SchemaRef,
    url: ObjectStoreUrl,
    groups: Vec<FileGroup>,
    /// Who reads them, if not the engine.
    local: Option<Arc<Local>>,
}

impl Files {
    /// The table of these files, for this many threads.
    pub fn new(store: &Store, files: &[Usable], schema: SchemaRef, threads: usize) -> Result<Self> {
        Ok(Self {
            schema,
            url: store.engine_url()?,
            groups: groups(parts(store, files)?, threads),
            local: None,
        })
    }

    /// The same on this machine, where nobody has looked at the files yet.
    pub fn read_here(
        store: &Store,
        files: &[Usable],
        columns: &'static [Column],
        threads: usize,
        seen: Arc<Seen>,
    ) -> Result<Self> {
        let parts = parts(store, files)?.into_iter().zip(files).enumerate();
        let parts = parts.map(|(number, (part, file))| {
            let path = PathBuf::from(&file.path);
            part.with_extension(Own { number, path })
        });
        Ok(Self {
            schema: arrow_schema(columns),
            url: store.engine_url()?,
            groups: groups(parts.collect(), threads),
            local: Some(Arc::new(Local::new(columns, seen))),
        })
    }
}

fn parts(store: &Store, files: &[Usable]) -> Result<Vec<PartitionedFile>> {
    let parts = files.iter().map(|file| {
        let mut part = PartitionedFile::new("", file.size);
        part.object_meta.location = store.key(&file.path)?;
        Ok(part)
    });
    parts.collect()
}

/// As many groups as there are threads, of about the same size.
fn groups(files: Vec<PartitionedFile>, threads: usize) -> Vec<FileGroup> {
    let whole: u64 = files.iter().map(|file| file.object_meta.size).sum();
    let share = whole.div_ceil(threads.max(1) as u64).max(1);
    let mut groups: Vec<Vec<PartitionedFile>> = vec![Vec::new(); threads.max(1)];
    let mut before = 0;
    for file in files {
        let at = (before / share) as usize;
        before += file.object_meta.size;
        groups[at.min(threads.saturating_sub(1))].push(file);
    }
    groups.retain(|group| !group.is_empty());
    groups.into_iter().map(FileGroup::new).collect()
}

#[async_trait]
impl TableProvider for Files {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        _: &[Expr],
        limit: Option<usize>,
    ) -> Answer<Arc<dyn ExecutionPlan>> {
        let options = state.default_table_options().parquet;
        let mut source =
            ParquetSource::new(Arc::clone(&self.schema)).with_table_parquet_options(options);
        if let Some(local) = &self.local {
            let reader: Arc<Local> = Arc::clone(local);
            source = source.with_parquet_file_reader_factory(reader);
        }
        let scan = FileScanConfigBuilder::new(self.url.clone(), Arc::new(source))
            .with_file_groups(self.groups.clone())
            .with_projection_indices(projection.cloned())?
            .with_limit(limit);
        Ok(DataSourceExec::from_data_source(scan.build()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_stay_in_order_and_shares_are_alike() {
        let file = |size| PartitionedFile::new("x", size);
        let sizes = |groups: Vec<FileGroup>| {
            let of = |group: &FileGroup| group.iter().map(|file| file.object_meta.size).collect();
            groups.iter().map(of).collect::<Vec<Vec<u64>>>()
        };
        let all = [3, 1, 2, 2, 4].map(file).to_vec();
        assert_eq!(sizes(groups(all.clone(), 2)), [vec![3, 1, 2], vec![2, 4]]);
        assert_eq!(sizes(groups(all.clone(), 1)), [vec![3, 1, 2, 2, 4]]);
        assert_eq!(sizes(groups(all, 9)).concat(), [3, 1, 2, 2, 4]);
        assert_eq!(sizes(groups([0, 0].map(file).to_vec(), 2)), [vec![0, 0]]);
        assert!(groups(Vec::new(), 2).is_empty());
    }
}
