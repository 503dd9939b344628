//! Rows of files that only the table's format can decode.
use std::{collections::HashMap, sync::Arc};

use arrow_array::{ArrayRef, BooleanArray, Int64Array, RecordBatch};
use arrow_schema::Schema;
use datafusion::{
    error::{DataFusionError, Result},
    scalar::ScalarValue,
};
use futures::{StreamExt, TryStreamExt, stream, stream::BoxStream};
use lakebed_core::{Error, scan::MatchBy};
use roaring::RoaringTreemap;

use super::{
    adapt::Wanted,
    error::{about_file, external},
    finish::Finish,
    shape::Shape,
    unit::{Scene, Unit},
};

/// The unit's rows as the scan gives them out.
pub(crate) fn rows(
    scene: Arc<Scene>,
    unit: Arc<Unit>,
    finish: Arc<Finish>,
    fields: Arc<HashMap<String, Wanted>>,
    constants: Vec<ScalarValue>,
) -> BoxStream<'static, Result<RecordBatch>> {
    let open = async move {
        let (only, gone) = unit.vectors(&scene).await.map_err(external)?;
        let wanted = finish.wanted().fields().iter().map(|it| match fields.get(it.name()) {
            Some(wanted) => Arc::clone(&wanted.table),
            None => Arc::clone(it),
        });
        let schema = Arc::new(Schema::new(wanted.collect::<Vec<_>>()));
        let decoded = scene.format.decode_rows(&scene.storage, unit.data_file(), Arc::clone(&schema));
        let mut decoder = Decoder { finish, schema: Arc::clone(&schema), constants, only, gone, next: 0 };
        Ok::<_, DataFusionError>(decoded.map(move |it| {
            let batch = it.map_err(external)?;
            decoder.batch(&batch).map_err(|it| about_file(unit.name(), it))
        }))
    };
    stream::once(open).try_flatten().boxed()
}

struct Decoder {
    finish: Arc<Finish>,
    schema: Arc<Schema>,
    constants: Vec<ScalarValue>,
    only: Option<RoaringTreemap>,
    gone: RoaringTreemap,
    /// Position of the next row in the file.
    next: u64,
}

impl Decoder {
    fn batch(&mut self, batch: &RecordBatch) -> Result<RecordBatch> {
        if batch.num_columns() != self.schema.fields().len() {
            return Err(external(Error::internal("a format decoded other columns than it was asked for")));
        }
        let first = self.next;
        self.next += batch.num_rows() as u64;
        let positions = first..self.next;
        let numbers = positions.clone().map(|it| i64::try_from(it).ok()).collect::<Int64Array>();
        let mut columns =
            batch.columns().iter().enumerate().map(|(at, it)| self.shown(at, it)).collect::<Result<Vec<_>>>()?;
        let mut numbers = Some(numbers);
        let mut rows = batch.num_rows();
        if self.only.is_some() || !self.gone.is_empty() {
            let kept: BooleanArray = positions.map(|it| Some(self.keeps(it))).collect();
            rows = kept.true_count();
            for column in &mut columns {
                *column = arrow_select::filter::filter(column, &kept)?;
            }
            let filtered = numbers.take().map(|it| arrow_select::filter::filter(&it, &kept)).transpose()?;
            numbers = filtered.map(|it| it.to_data().into());
        }
        self.finish.batch(columns, &self.constants, numbers, rows)
    }

    fn keeps(&self, row: u64) -> bool {
        self.only.as_ref().is_none_or(|it| it.contains(row)) && !self.gone.contains(row)
    }

    fn shown(&self, at: usize, array: &ArrayRef) -> Result<ArrayRef> {
        let (table, shown) = (self.schema.field(at), self.finish.wanted().field(at));
        let decoded = table.clone().with_data_type(array.data_type().clone());
        let shape =
            Shape::find(MatchBy::Name, &decoded, table, shown).map_err(|it| DataFusionError::External(Box::new(it)))?;
        Ok(shape.apply(array)?)
    }
}
