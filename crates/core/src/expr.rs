//! Predicates small enough for every format to prune with.
use std::fmt;

use serde::{Deserialize, Serialize};

/// Names a column through structs: `["address", "city"]`. Names are the table's, in the schema's case.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ColumnPath(pub Vec<String>);

impl ColumnPath {
    pub fn top(name: impl Into<String>) -> Self {
        Self(vec![name.into()])
    }
}

impl fmt::Display for ColumnPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("."))
    }
}

/// A typed constant, in the table's own type.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Scalar {
    Boolean(bool),
    /// Every signed integer width.
    Int(i64),
    /// Unscaled value and scale.
    Decimal(i128, i8),
    Float(f32),
    Double(f64),
    Utf8(String),
    Binary(Vec<u8>),
    /// Days since the epoch.
    Date(i32),
    /// Microseconds since the epoch, with or without zone as the column says.
    Timestamp(i64),
    /// Nanoseconds since the epoch.
    TimestampNanos(i64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cmp {
    Eq,
    NotEq,
    Lt,
    LtEq,
    Gt,
    GtEq,
}

/// A condition a row must meet, with SQL's three values. What cannot be said here is `True`: pruning then keeps the file.
///
/// A predicate is a *necessary* condition of the row being wanted; nothing here may drop a row that the
/// query wants. `Not` stands only above exact conditions, never above a weakened one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Predicate {
    True,
    False,
    And(Vec<Predicate>),
    Or(Vec<Predicate>),
    Not(Box<Predicate>),
    IsNull(ColumnPath),
    Compare(ColumnPath, Cmp, Scalar),
    In(ColumnPath, Vec<Scalar>),
    StartsWith(ColumnPath, String),
}
