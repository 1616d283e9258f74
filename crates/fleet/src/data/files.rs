//! A table of files for the engine.
//!
//! Which files, and how large they are, is known already: the engine asks the store for nothing but
//! their content. Each file goes to one thread as a whole, in the order of the files.

use super::{Store, Usable};
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
use std::sync::Arc;

/// Files of one table.
#[derive(Debug)]
pub struct Files {
    schema: SchemaRef,
    url: ObjectStoreUrl,
    groups: Vec<FileGroup>,
}

impl Files {
    /// The table of these files, for this many threads.
    pub fn of(store: &Store, files: &[Usable], schema: SchemaRef, threads: usize) -> Result<Self> {
        let mut parts = Vec::new();
        for file in files {
            let mut part = PartitionedFile::new("", file.size);
            part.object_meta.location = store.key(&file.path)?;
            parts.push(part);
        }
        Ok(Self {
            schema,
            url: store.engine_url()?,
            groups: groups(parts, threads),
        })
    }
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
        let source =
            ParquetSource::new(Arc::clone(&self.schema)).with_table_parquet_options(options);
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
