//! The values that all rows of a file share, and the folder that shows them.
//!
//! Folders are for people and old tools: readers take the values from the table's record. Spec: Hive's
//! `FileUtils.escapePathName`, which Spark and Delta use; a null is `__HIVE_DEFAULT_PARTITION__`.
use std::fmt::Write as _;

use arrow_array::{Array, ArrayRef};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use datafusion::scalar::ScalarValue;
use lakebed_core::{Error, Result, expr::Scalar};

use super::target::PartitionColumn;
use crate::scan::from_arrow;

const NULL: &str = "__HIVE_DEFAULT_PARTITION__";

/// One partition of one write.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Partition {
    /// By the table's column name, in the order of the table's partition.
    pub(super) values: Vec<(String, Option<Scalar>)>,
    /// `a=1/b=x`; empty without folders.
    pub(super) folders: String,
}

impl Partition {
    /// The partition of row `row`; `arrays` are the partition columns.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`](lakebed_core::ErrorKind) for a value that no partition can have: NaN.
    pub(super) fn of_row(columns: &[PartitionColumn], arrays: &[ArrayRef], row: usize) -> Result<Self> {
        let mut partition = Self::default();
        for (column, array) in columns.iter().zip(arrays) {
            let value = value(column, array, row)?;
            if let Some(folder) = &column.folder {
                let text = match &value {
                    None => None,
                    Some(_) => Some(text(array, row)?),
                };
                let slash = if partition.folders.is_empty() { "" } else { "/" };
                let _ = write!(partition.folders, "{slash}{}={}", escaped(folder), shown(text.as_deref()));
            }
            partition.values.push((column.name.clone(), value));
        }
        Ok(partition)
    }
}

fn value(column: &PartitionColumn, array: &ArrayRef, row: usize) -> Result<Option<Scalar>> {
    if array.is_null(row) {
        return Ok(None);
    }
    let scalar = ScalarValue::try_from_array(array, row).map_err(crate::error::of_datafusion)?;
    let value = from_arrow(&scalar)
        .ok_or_else(|| Error::invalid(format!("column `{}`: {scalar} names no partition", column.name)))?;
    Ok(Some(value))
}

fn text(array: &ArrayRef, row: usize) -> Result<String> {
    const TIME: Option<&str> = Some("%Y-%m-%d %H:%M:%S%.f");
    let options = FormatOptions::new().with_timestamp_format(TIME).with_timestamp_tz_format(TIME);
    let shown = ArrayFormatter::try_new(array, &options).map_err(|it| Error::internal(it.to_string()))?;
    shown.value(row).try_to_string().map_err(|it| Error::internal(it.to_string()))
}

/// A value as the last part of a folder's name. Empty text looks like null: no folder can end in `=`.
fn shown(text: Option<&str>) -> String {
    match text {
        None | Some("") => NULL.to_owned(),
        Some(text) => escaped(text),
    }
}

/// `text` with everything escaped that some file system or URL gives a meaning of its own.
fn escaped(text: &str) -> String {
    let mut name = String::with_capacity(text.len());
    for sign in text.chars() {
        match sign {
            '"' | '#' | '%' | '\'' | '*' | '/' | ':' | '=' | '?' | '\\' | '\u{7f}' | '{' | '}' | '[' | ']' | '^' => {
                let _ = write!(name, "%{:02X}", u32::from(sign));
            }
            sign if sign < ' ' => {
                let _ = write!(name, "%{:02X}", u32::from(sign));
            }
            sign => name.push(sign),
        }
    }
    // A folder of dots alone is another folder.
    match name.as_str() {
        "." | ".." => name.replace('.', "%2E"),
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{Date32Array, Float64Array, StringArray, TimestampMicrosecondArray};

    use super::*;

    fn folder(array: ArrayRef) -> String {
        let column = PartitionColumn { name: "p".into(), column: 0, folder: Some("p".into()) };
        Partition::of_row(&[column], &[array], 0).unwrap().folders
    }

    fn text(value: Option<&str>) -> ArrayRef {
        Arc::new(StringArray::from(vec![value]))
    }

    #[test]
    fn folders_are_escaped_as_hive_does() {
        for (value, expected) in [
            (text(Some("plain")), "p=plain"),
            (text(Some("a b+c")), "p=a b+c"),
            (text(Some("a/b=c%")), "p=a%2Fb%3Dc%25"),
            (text(Some("grün")), "p=grün"),
            (text(Some("x\ny")), "p=x%0Ay"),
            (text(Some("")), "p=__HIVE_DEFAULT_PARTITION__"),
            (text(None), "p=__HIVE_DEFAULT_PARTITION__"),
            (Arc::new(Date32Array::from(vec![19_000])), "p=2022-01-08"),
            (Arc::new(TimestampMicrosecondArray::from(vec![1_000_000])), "p=1970-01-01 00%3A00%3A01"),
        ] {
            assert_eq!(folder(value), expected);
        }
    }

    #[test]
    fn nan_names_no_partition() {
        let column = PartitionColumn { name: "p".into(), column: 0, folder: None };
        let nan: ArrayRef = Arc::new(Float64Array::from(vec![f64::NAN]));
        let err = Partition::of_row(&[column], &[nan], 0).unwrap_err();
        assert_eq!(err.to_string(), "column `p`: NaN names no partition");
    }
}
