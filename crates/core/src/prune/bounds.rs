//! What bounds say of single values.
use std::cmp::Ordering;

use super::{Facts, Truth};
use crate::expr::{Cmp, ColumnPath, Scalar};

/// One column of one file.
#[derive(Debug, Default)]
pub(super) struct Leaf {
    /// No value is smaller.
    lower: Option<Scalar>,
    /// No value is greater, see [`Leaf::cut`].
    upper: Option<Scalar>,
    /// `upper` is text that may have been cut: values may go on behind it.
    cut: bool,
    /// Every row is null.
    only_nulls: bool,
    /// Some row may be null.
    nulls: bool,
}

impl Leaf {
    pub(super) fn of(column: &ColumnPath, facts: &dyn Facts) -> Self {
        match facts.constant(column) {
            Some(None) => return Self { only_nulls: true, nulls: true, ..Self::default() },
            Some(Some(value)) => {
                let (lower, upper) = (usable_lower(value.clone()), exact_upper(value));
                return Self { lower, upper, ..Self::default() };
            }
            None => (),
        }
        let Some(stats) = facts.column(column) else { return Self { nulls: true, ..Self::default() } };
        let only_nulls = match (stats.nulls, facts.rows()) {
            (Some(nulls), Some(rows)) => rows > 0 && nulls >= rows,
            _ => false,
        };
        let cut = !stats.exact && matches!(stats.upper, Some(Scalar::Utf8(_) | Scalar::Binary(_)));
        let leaf = Self {
            lower: stats.lower.and_then(usable_lower),
            upper: stats.upper.and_then(usable_upper),
            cut,
            only_nulls,
            nulls: stats.nulls != Some(0),
        };
        leaf.checked()
    }

    /// Bounds out of order, or of two types, are no bounds.
    fn checked(self) -> Self {
        match (&self.lower, &self.upper) {
            (Some(lower), Some(upper)) if !matches!(lower.order(upper), Some(Ordering::Less | Ordering::Equal)) => {
                Self { lower: None, upper: None, ..self }
            }
            _ => self,
        }
    }

    /// Adds that the outcome is null for rows that are.
    pub(super) fn with_nulls(&self, truth: Truth) -> Truth {
        if self.only_nulls { Truth::NULL } else { Truth { null: self.nulls, ..truth } }
    }

    pub(super) fn is_null(&self) -> Truth {
        Truth { yes: self.nulls, no: !self.only_nulls, null: false }
    }

    /// Whether a value that is not null may stand in this relation to `value`.
    pub(super) fn some(&self, cmp: Cmp, value: &Scalar) -> bool {
        match cmp {
            Cmp::Lt => self.lowest(value).is_none_or(Ordering::is_lt),
            Cmp::LtEq => self.lowest(value).is_none_or(Ordering::is_le),
            Cmp::Gt => self.highest(value).is_none_or(Ordering::is_gt),
            Cmp::GtEq => self.highest(value).is_none_or(Ordering::is_ge),
            Cmp::Eq => self.some(Cmp::LtEq, value) && self.some(Cmp::GtEq, value),
            Cmp::NotEq => self.lowest(value) != Some(Ordering::Equal) || self.highest(value) != Some(Ordering::Equal),
        }
    }

    /// How the smallest value that may be there compares to `value`.
    fn lowest(&self, value: &Scalar) -> Option<Ordering> {
        self.lower.as_ref()?.order(value)
    }

    /// How the greatest value that may be there compares to `value`.
    fn highest(&self, value: &Scalar) -> Option<Ordering> {
        let upper = self.upper.as_ref()?;
        if self.cut && begins(value, upper) {
            return Some(Ordering::Greater);
        }
        upper.order(value)
    }

    pub(super) fn starts_with(&self, prefix: &str) -> Truth {
        let text = |it: &Option<Scalar>| match it {
            Some(Scalar::Utf8(text)) => Some(text.clone()),
            _ => None,
        };
        let (lower, upper) = (text(&self.lower), text(&self.upper));
        let too_high = lower.as_ref().is_some_and(|it| !it.starts_with(prefix) && it.as_str() > prefix);
        let too_low =
            upper.as_ref().is_some_and(|it| it.as_str() < prefix && !(self.cut && prefix.starts_with(it.as_str())));
        // All that lies between two texts with one beginning begins so too.
        let all = [lower, upper].iter().all(|it| it.as_ref().is_some_and(|it| it.starts_with(prefix)));
        self.with_nulls(Truth { yes: !(too_high || too_low), no: !all, null: false })
    }
}

/// Whether `value` begins with `start`.
fn begins(value: &Scalar, start: &Scalar) -> bool {
    match (value, start) {
        (Scalar::Utf8(value), Scalar::Utf8(start)) => value.starts_with(start.as_str()),
        (Scalar::Binary(value), Scalar::Binary(start)) => value.starts_with(start),
        _ => false,
    }
}

/// Writers take `-0.0` for `0.0`, readers may not: the lower bound is the smaller one. NaN bounds nothing.
fn usable_lower(bound: Scalar) -> Option<Scalar> {
    match bound {
        Scalar::Float(it) if it.is_nan() => None,
        Scalar::Double(it) if it.is_nan() => None,
        Scalar::Float(0.0) => Some(Scalar::Float(-0.0)),
        Scalar::Double(0.0) => Some(Scalar::Double(-0.0)),
        bound => Some(bound),
    }
}

/// NaN is greater than all numbers, and no writer's bounds count it: the upper bound of a float says nothing.
fn usable_upper(bound: Scalar) -> Option<Scalar> {
    match bound {
        Scalar::Float(_) | Scalar::Double(_) => None,
        bound => Some(bound),
    }
}

/// The upper bound of a value that every row has. Readers differ in whether NaN equals itself.
fn exact_upper(value: Scalar) -> Option<Scalar> {
    match value {
        Scalar::Float(it) if it.is_nan() => None,
        Scalar::Double(it) if it.is_nan() => None,
        // Matches `-0.0` as well.
        Scalar::Float(0.0) => Some(Scalar::Float(0.0)),
        Scalar::Double(0.0) => Some(Scalar::Double(0.0)),
        value => Some(value),
    }
}
