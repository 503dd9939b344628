//! Which files a predicate lets us skip.
//!
//! A predicate has three values for a row: true, false, null. For a file it has a *set* of them, those that some row
//! might give; bounds and null counts bound that set from above. A file is kept when true is in the set.
//!
//! 1. Leaves are judged from bounds, null counts and partition values (module `bounds`). What is not known lets every value
//!    be.
//! 2. `Not` swaps true and false; `And` is true only where all are, false where one is; `Or` the other way round.
//!
//! Sets are never too small: missing statistics, bounds out of order, values of two types, NaN and cut strings all
//! widen them. So a kept file costs time, a dropped one never a row.
use crate::{
    expr::{Cmp, ColumnPath, Predicate, Scalar},
    file::{ColumnStats, DataFile},
};

mod bounds;

use self::bounds::Leaf;

/// What is known of a file without opening it.
pub trait Facts {
    /// Rows in the file, deleted ones included; `None` is unknown.
    fn rows(&self) -> Option<u64>;

    /// Bounds and null count of a column; `None` is unknown.
    fn column(&self, column: &ColumnPath) -> Option<ColumnStats>;

    /// The one value that every row has: a partition value. `Some(None)` is null.
    fn constant(&self, _column: &ColumnPath) -> Option<Option<Scalar>> {
        None
    }
}

/// Whether a row of the file may meet `predicate`: `false` only if none can.
pub fn keep(predicate: &Predicate, facts: &dyn Facts) -> bool {
    possible(predicate, facts).yes
}

/// Partition values win over statistics, as they win over what the file holds.
impl Facts for DataFile {
    fn rows(&self) -> Option<u64> {
        self.stats.rows
    }

    fn column(&self, column: &ColumnPath) -> Option<ColumnStats> {
        self.stats.columns.iter().find(|(name, _)| name == column).map(|(_, stats)| stats.clone())
    }

    fn constant(&self, column: &ColumnPath) -> Option<Option<Scalar>> {
        let [name] = column.0.as_slice() else { return None };
        self.partition.iter().find(|(it, _)| it == name).map(|(_, value)| value.clone())
    }
}

/// The values a predicate may have for the rows of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Truth {
    yes: bool,
    no: bool,
    null: bool,
}

impl Truth {
    const ANY: Self = Self { yes: true, no: true, null: true };
    const YES: Self = Self { yes: true, no: false, null: false };
    const NO: Self = Self { yes: false, no: true, null: false };
    const NULL: Self = Self { yes: false, no: false, null: true };

    fn not(self) -> Self {
        Self { yes: self.no, no: self.yes, null: self.null }
    }

    fn and(self, other: Self) -> Self {
        Self {
            yes: self.yes && other.yes,
            no: self.no || other.no,
            null: (self.null && (other.null || other.yes)) || (other.null && self.yes),
        }
    }

    fn or(self, other: Self) -> Self {
        self.not().and(other.not()).not()
    }
}

fn possible(predicate: &Predicate, facts: &dyn Facts) -> Truth {
    match predicate {
        // `True` also stands for what could not be said, and that may be anything.
        Predicate::True => Truth::ANY,
        Predicate::False => Truth::NO,
        Predicate::And(all) => all.iter().map(|it| possible(it, facts)).fold(Truth::YES, Truth::and),
        Predicate::Or(any) => any.iter().map(|it| possible(it, facts)).fold(Truth::NO, Truth::or),
        Predicate::Not(inner) => possible(inner, facts).not(),
        Predicate::IsNull(column) => Leaf::of(column, facts).is_null(),
        Predicate::Compare(column, cmp, value) => compare(&Leaf::of(column, facts), *cmp, value),
        // Nothing is in an empty list, null is not either.
        Predicate::In(_, values) if values.is_empty() => Truth { null: true, ..Truth::NO },
        Predicate::In(column, values) => {
            let leaf = Leaf::of(column, facts);
            let equal = values.iter().map(|it| compare(&leaf, Cmp::Eq, it));
            leaf.with_nulls(equal.fold(Truth::NO, Truth::or))
        }
        Predicate::StartsWith(column, prefix) => Leaf::of(column, facts).starts_with(prefix),
    }
}

fn compare(leaf: &Leaf, cmp: Cmp, value: &Scalar) -> Truth {
    let opposite = match cmp {
        Cmp::Eq => Cmp::NotEq,
        Cmp::NotEq => Cmp::Eq,
        Cmp::Lt => Cmp::GtEq,
        Cmp::LtEq => Cmp::Gt,
        Cmp::Gt => Cmp::LtEq,
        Cmp::GtEq => Cmp::Lt,
    };
    leaf.with_nulls(Truth { yes: leaf.some(cmp, value), no: leaf.some(opposite, value), null: false })
}

#[cfg(test)]
mod tests;
