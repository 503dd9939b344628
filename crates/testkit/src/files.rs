//! Files of rows as a writer leaves them: under names nobody else makes, with bounds.
use arrow_schema::Schema;
use bytes::Bytes;
use lakebed_core::{
    Error, ErrorKind, Result,
    expr::{ColumnPath, Scalar},
    file::ColumnStats,
    path::FilePath,
    storage::{Put, Storage},
};

use crate::{rows::Rows, value::Value};

/// Creates an object under a name nobody else makes: one that is there already is this very one.
pub async fn put_fresh(storage: &Storage, path: &str, body: Bytes) -> Result<()> {
    for _ in 0..3 {
        match storage.create(path, body.clone()).await? {
            Put::Won | Put::Lost => return Ok(()),
            Put::Unknown if storage.head(&FilePath::below(path)).await?.is_some() => return Ok(()),
            Put::Unknown => (),
        }
    }
    Err(Error::new(ErrorKind::Unavailable, format!("storage does not take {path}")))
}

/// The value as a bound or a partition value; `None` for kinds that have none here.
pub fn scalar(value: &Value) -> Option<Scalar> {
    Some(match value {
        Value::Bool(it) => Scalar::Boolean(*it),
        Value::Int(it) => Scalar::Int(i64::try_from(*it).ok()?),
        Value::Text(it) => Scalar::Utf8(it.clone()),
        Value::Date(it) => Scalar::Date(i32::try_from(*it).ok()?),
        Value::Timestamp(it) => Scalar::Timestamp(i64::try_from(it.div_euclid(1000)).ok()?),
        _ => return None,
    })
}

/// Bounds and null counts of the columns whose values have scalars.
pub fn statistics(rows: &Rows, schema: &Schema) -> Vec<(ColumnPath, ColumnStats)> {
    let column = |name: &String| {
        let at = rows.column(name)?;
        let mut values: Vec<&Value> = rows.rows.iter().map(|row| &row[at]).filter(|it| !it.is_null()).collect();
        values.sort_by(|one, two| one.order(two));
        let bound = |it: Option<&&Value>| it.and_then(|it| scalar(it));
        let stats = ColumnStats {
            lower: bound(values.first()),
            upper: bound(values.last()),
            nulls: Some((rows.len() - values.len()) as u64),
            exact: true,
        };
        Some((ColumnPath::top(name), stats))
    };
    schema.fields().iter().filter_map(|it| column(it.name())).collect()
}
