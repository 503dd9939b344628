//! Scattered deletions, taken out after decoding.
//!
//! A decoder that skips single rows stops and starts twice a deletion, in every column. Where deletions are few and
//! scattered it is cheaper to decode every row, with its number in the file as one column more, and to leave the deleted
//! ones out of the batch. The numbers are the file's own, so nothing that skips rows below (pages, row groups, filters)
//! can move a deletion to another row.
use arrow_array::{Array, BooleanArray, RecordBatch, cast::AsArray, types::Int64Type};
use arrow_buffer::BooleanBuffer;
use arrow_schema::SchemaRef;
use arrow_select::filter::filter_record_batch;
use datafusion::error::Result;
use lakebed_core::{Error, file::Encoding, scan::Merge};

use super::{error::external, finish::with_rows, reading::Reading};

/// A vector that takes away one row in as many, or more, is worth a mask.
const SCATTERED: u64 = 1024;

/// Whether a scan of `readings` is to read row numbers for masks: some vector takes away enough, and every row comes from
/// the Parquet reader.
pub(super) fn worthwhile(readings: &[Reading]) -> bool {
    let parquet = |it: &Reading| {
        matches!(it.task.merge, Merge::Concat) && it.task.files.iter().all(|it| it.encoding == Encoding::Parquet)
    };
    let scattered = |it: &Reading| {
        let rows = it.task.files.iter().map(|it| it.stats.rows).sum::<Option<u64>>();
        let gone = it.task.deletes.iter().map(|it| it.rows).sum::<Option<u64>>();
        rows.zip(gone).is_some_and(|(rows, gone)| gone.saturating_mul(SCATTERED) >= rows)
    };
    readings.iter().any(scattered) && readings.iter().all(parquet)
}

/// What is done to the batches of a file whose last column is the row number.
#[derive(Debug, Clone)]
pub(super) enum Cut {
    /// There is no such column.
    Nothing,
    /// The row number goes.
    Number,
    /// The row number goes, and the rows whose bit is not set.
    Mask(BooleanBuffer),
}

impl Cut {
    /// # Errors
    /// [`Error::internal`] for a batch without row numbers, or one that the file does not have.
    pub(super) fn apply(&self, batch: RecordBatch) -> Result<RecordBatch> {
        let mask = match self {
            Self::Nothing => return Ok(batch),
            Self::Number => None,
            Self::Mask(mask) => Some(mask),
        };
        let last = batch.num_columns().checked_sub(1).ok_or_else(|| external(Error::internal("no row numbers")))?;
        let numbers = batch.column(last);
        let kept = mask.map(|it| kept(it, numbers.as_ref())).transpose()?;
        let rest = without(batch, last)?;
        match kept {
            Some(kept) if kept.true_count() < kept.len() => Ok(filter_record_batch(&rest, &kept)?),
            _ => Ok(rest),
        }
    }
}

fn without(mut batch: RecordBatch, last: usize) -> Result<RecordBatch> {
    let rows = batch.num_rows();
    batch.remove_column(last);
    let schema: SchemaRef = batch.schema();
    with_rows(schema, batch.columns().to_vec(), rows)
}

/// The bits of the rows that `numbers` names.
fn kept(mask: &BooleanBuffer, numbers: &dyn Array) -> Result<BooleanArray> {
    let numbers = numbers.as_primitive_opt::<Int64Type>().filter(|it| it.null_count() == 0);
    let numbers = numbers.ok_or_else(|| external(Error::internal("row numbers that are none")))?.values();
    let place = |number: i64| match usize::try_from(number) {
        Ok(at) if at < mask.len() => Ok(at),
        _ => Err(external(Error::internal(format!("row {number} of a file of {}", mask.len())))),
    };
    let (Some(first), Some(last)) = (numbers.first(), numbers.last()) else {
        return Ok(BooleanArray::new(BooleanBuffer::new_unset(0), None));
    };
    let (first, last) = (place(*first)?, place(*last)?);
    // Mostly nothing was skipped within a batch: numbers only rise, so their ends tell.
    if last.checked_sub(first) == Some(numbers.len() - 1) {
        return Ok(BooleanArray::new(mask.slice(first, numbers.len()), None));
    }
    let bits = numbers.iter().map(|it| place(*it).map(|at| mask.value(at))).collect::<Result<Vec<bool>>>()?;
    Ok(bits.into())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Int64Array, RecordBatchOptions};

    use super::*;

    fn batch(numbers: &[i64]) -> RecordBatch {
        let numbers: ArrayRef = Arc::new(Int64Array::from(numbers.to_vec()));
        RecordBatch::try_from_iter([("a", Arc::clone(&numbers)), ("row", numbers)]).unwrap()
    }

    fn left(cut: &Cut, numbers: &[i64]) -> Result<Vec<i64>> {
        let batch = cut.apply(batch(numbers))?;
        assert_eq!(batch.num_columns(), 1);
        Ok(batch.column(0).as_primitive::<Int64Type>().values().to_vec())
    }

    #[test]
    fn rows_go_by_their_number() {
        let mask = Cut::Mask([true, false, true, true, false, true].into_iter().collect());
        for (numbers, expected) in [
            (&[0, 1, 2, 3, 4, 5][..], &[0, 2, 3, 5][..]),
            (&[2, 3], &[2, 3]),
            (&[3, 4, 5], &[3, 5]),
            (&[0, 4, 5], &[0, 5]),
            (&[1], &[]),
            (&[], &[]),
            // As many numbers as their ends span would have, and yet not consecutive: they never come so, and are read.
            (&[5, 0], &[5, 0]),
        ] {
            assert_eq!(left(&mask, numbers).unwrap(), expected);
        }
        assert_eq!(left(&Cut::Number, &[1, 4]).unwrap(), [1, 4]);
    }

    #[test]
    fn a_row_the_file_does_not_have_is_an_error() {
        let mask = Cut::Mask(BooleanBuffer::new_set(3));
        assert!(left(&mask, &[2, 3]).unwrap_err().to_string().contains("row 3 of a file of 3"));
        assert!(left(&mask, &[-1]).is_err());
    }

    #[test]
    fn batches_of_nothing_but_numbers_keep_their_count() {
        let options = RecordBatchOptions::new().with_row_count(Some(3));
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![0, 1, 2]));
        let only = batch(&[0]).schema().project(&[1]).unwrap();
        let only = RecordBatch::try_new_with_options(Arc::new(only), vec![numbers], &options).unwrap();
        let mask = Cut::Mask([true, false, true].into_iter().collect());
        assert_eq!(mask.apply(only).unwrap().num_rows(), 2);
    }
}
