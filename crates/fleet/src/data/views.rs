//! Texts and bytes as views, which spare copies, and as plain arrays. Ballista sends whole buffers of
//! a view, whatever part of them it shows, and may not fit them into a message
//! (`ballista_restricted_configuration`); so its tables are plain, and its answers become views here.

use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::Result;
use std::sync::Arc;

/// The schema with views.
#[cfg(any(feature = "ballista", test))]
pub fn with_views(schema: &Schema) -> SchemaRef {
    changed(schema, &|found| match found {
        DataType::Utf8 => DataType::Utf8View,
        DataType::Binary => DataType::BinaryView,
        other => other.clone(),
    })
}

/// The schema without views.
pub fn without_views(schema: &Schema) -> SchemaRef {
    changed(schema, &|found| match found {
        DataType::Utf8View => DataType::Utf8,
        DataType::BinaryView => DataType::Binary,
        other => other.clone(),
    })
}

/// The rows in the types of a schema.
pub fn in_types_of(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    let columns = batch.columns().iter().zip(schema.fields());
    let columns = columns.map(|(column, field)| cast(column, field.data_type()));
    let rows = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(
        Arc::clone(schema),
        columns.collect::<Result<_, _>>()?,
        &rows,
    )?)
}

fn changed(schema: &Schema, to: &dyn Fn(&DataType) -> DataType) -> SchemaRef {
    let fields = schema.fields().iter().map(|field| in_field(field, to));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

fn in_field(field: &Field, to: &dyn Fn(&DataType) -> DataType) -> Field {
    let data_type = match field.data_type() {
        DataType::List(element) => DataType::List(Arc::new(in_field(element, to))),
        other => to(other),
    };
    field.clone().with_data_type(data_type)
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::{ArrayRef, BinaryViewArray, Int64Array, StringViewArray};

    #[test]
    fn rows_are_the_same_with_and_without_views() {
        let columns: [(&str, ArrayRef); 3] = [
            (
                "text",
                Arc::new(StringViewArray::from(vec![Some("a"), None])),
            ),
            (
                "id",
                Arc::new(BinaryViewArray::from_iter_values([
                    b"0123456789abcdef",
                    b"x",
                ])),
            ),
            ("number", Arc::new(Int64Array::from(vec![1, 2]))),
        ];
        let batch = RecordBatch::try_from_iter_with_nullable(
            columns.map(|(name, column)| (name, column, true)),
        );
        let batch = batch.unwrap();
        let plain = in_types_of(&batch, &without_views(&batch.schema())).unwrap();
        let types: Vec<_> = plain
            .columns()
            .iter()
            .map(|c| c.data_type().clone())
            .collect();
        assert_eq!(types, [DataType::Utf8, DataType::Binary, DataType::Int64]);
        let again = in_types_of(&plain, &with_views(&plain.schema())).unwrap();
        assert_eq!(again, batch);
    }

    #[test]
    fn elements_of_lists_change_with_their_list() {
        let list = |element| {
            let element = Arc::new(Field::new("element", element, false));
            Schema::new(vec![Field::new("frames", DataType::List(element), true)])
        };
        let views = list(DataType::BinaryView);
        assert_eq!(*without_views(&views), list(DataType::Binary));
        assert_eq!(*with_views(&without_views(&views)), views);
    }
}
