//! Predicates small enough for every format to prune with.
use std::{cmp::Ordering, fmt};

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

impl Scalar {
    /// The order of two values of one kind; `None` where they have none that is sure.
    pub fn order(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Boolean(a), Self::Boolean(b)) => Some(a.cmp(b)),
            (Self::Int(a), Self::Int(b)) => Some(a.cmp(b)),
            (Self::Utf8(a), Self::Utf8(b)) => Some(a.as_bytes().cmp(b.as_bytes())),
            (Self::Binary(a), Self::Binary(b)) => Some(a.cmp(b)),
            (Self::Date(a), Self::Date(b)) => Some(a.cmp(b)),
            (Self::Timestamp(a), Self::Timestamp(b)) | (Self::TimestampNanos(a), Self::TimestampNanos(b)) => {
                Some(a.cmp(b))
            }
            (Self::Timestamp(micros), Self::TimestampNanos(nanos)) => {
                Some((i128::from(*micros) * 1_000).cmp(&i128::from(*nanos)))
            }
            (Self::TimestampNanos(nanos), Self::Timestamp(micros)) => {
                Some(i128::from(*nanos).cmp(&(i128::from(*micros) * 1_000)))
            }
            (Self::Float(a), Self::Float(b)) => Some(a.total_cmp(b)),
            (Self::Double(a), Self::Double(b)) => Some(a.total_cmp(b)),
            (Self::Float(a), Self::Double(b)) => Some(f64::from(*a).total_cmp(b)),
            (Self::Double(a), Self::Float(b)) => Some(a.total_cmp(&f64::from(*b))),
            (Self::Decimal(a, a_scale), Self::Decimal(b, b_scale)) => decimals(*a, *a_scale, *b, *b_scale),
            (Self::Int(a), Self::Decimal(b, scale)) => decimals(i128::from(*a), 0, *b, *scale),
            (Self::Decimal(a, scale), Self::Int(b)) => decimals(*a, *scale, i128::from(*b), 0),
            _ => None,
        }
    }
}

/// Compares at the greater scale; `None` where a value does not fit there.
fn decimals(a: i128, a_scale: i8, b: i128, b_scale: i8) -> Option<Ordering> {
    let scale = a_scale.max(b_scale);
    let at = |value: i128, from: i8| {
        let by = u32::try_from(i16::from(scale) - i16::from(from)).ok()?;
        value.checked_mul(10_i128.checked_pow(by)?)
    };
    Some(at(a, a_scale)?.cmp(&at(b, b_scale)?))
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
