//! Which rows of a batch go to which partition.
use std::{collections::HashMap, sync::Arc};

use arrow_array::{Array, ArrayRef, UInt32Array, cast::AsArray};
use arrow_row::{RowConverter, SortField};
use arrow_schema::DataType;
use arrow_select::take::take;
use lakebed_core::{Error, Result};

use super::{partition::Partition, target::PartitionColumn};

/// Sorts rows by partition; knows the partitions it has seen.
#[derive(Debug)]
pub(super) struct Router {
    columns: Vec<PartitionColumn>,
    converter: Option<RowConverter>,
    known: HashMap<Box<[u8]>, usize>,
    pub(super) partitions: Vec<Partition>,
}

/// Rows of one partition: its position among the router's, and their arrays.
pub(super) type Routed = (usize, Vec<ArrayRef>);

impl Router {
    pub(super) fn new(columns: &[PartitionColumn]) -> Self {
        let partitions = if columns.is_empty() { vec![Partition::default()] } else { Vec::new() };
        Self { columns: columns.to_vec(), converter: None, known: HashMap::new(), partitions }
    }

    /// Splits `stored`, the arrays that go to files, by `keys`, the partition columns in the table's types. Partitions
    /// come in the order of their first row.
    pub(super) fn route(&mut self, keys: &[ArrayRef], stored: Vec<ArrayRef>, rows: usize) -> Result<Vec<Routed>> {
        if self.columns.is_empty() {
            return Ok(vec![(0, stored)]);
        }
        let places = self.places(keys, rows)?;
        let mut of_partition: Vec<(usize, Vec<u32>)> = Vec::new();
        let mut slot = HashMap::new();
        for (row, place) in (0u32..).zip(&places) {
            let at = *slot.entry(*place).or_insert_with(|| {
                of_partition.push((*place, Vec::new()));
                of_partition.len() - 1
            });
            of_partition[at].1.push(row);
        }
        if let [(place, _)] = of_partition.as_slice() {
            return Ok(vec![(*place, stored)]);
        }
        let part = |(place, rows): (usize, Vec<u32>)| {
            let rows = UInt32Array::from(rows);
            let arrays = stored.iter().map(|it| take(it, &rows, None).map(alone)).collect::<Result<Vec<_>, _>>();
            Ok((place, arrays.map_err(|it| Error::internal(it.to_string()))?))
        };
        of_partition.into_iter().map(part).collect()
    }

    /// The partition of each row.
    fn places(&mut self, keys: &[ArrayRef], rows: usize) -> Result<Vec<usize>> {
        let converter = match &mut self.converter {
            Some(converter) => converter,
            none => {
                let fields = keys.iter().map(|it| SortField::new(it.data_type().clone())).collect();
                none.insert(RowConverter::new(fields).map_err(|it| Error::unsupported(it.to_string()))?)
            }
        };
        let keyed = converter.convert_columns(keys).map_err(|it| Error::internal(it.to_string()))?;
        let mut places = Vec::with_capacity(rows);
        for row in 0..rows {
            let key = keyed.row(row);
            let place = match self.known.get(key.as_ref()) {
                Some(place) => *place,
                None => {
                    self.partitions.push(Partition::of_row(&self.columns, keys, row)?);
                    self.known.insert(key.as_ref().into(), self.partitions.len() - 1);
                    self.partitions.len() - 1
                }
            };
            places.push(place);
        }
        Ok(places)
    }
}

/// The array without the rest of the batch, which views would keep in memory.
fn alone(array: ArrayRef) -> ArrayRef {
    match array.data_type() {
        DataType::Utf8View => Arc::new(array.as_string_view().gc()),
        DataType::BinaryView => Arc::new(array.as_binary_view().gc()),
        _ => array,
    }
}
