//! A predicate on a row, with SQL's three values.
use std::cmp::Ordering;

use arrow_schema::{DataType, Schema};
use lakebed_core::expr::{Cmp, ColumnPath, Predicate, Scalar};

use super::coerce;
use crate::value::Value;

/// `None` is unknown. A column that the table does not have is null.
pub(super) fn holds(predicate: &Predicate, schema: &Schema, row: &[Value]) -> Option<bool> {
    let of = |it: &Predicate| holds(it, schema, row);
    match predicate {
        Predicate::True => Some(true),
        Predicate::False => Some(false),
        Predicate::And(all) => not(any(all.iter().map(of).map(not))),
        Predicate::Or(some) => any(some.iter().map(of)),
        Predicate::Not(inner) => not(of(inner)),
        Predicate::IsNull(column) => Some(column_of(column, schema, row).0.is_null()),
        Predicate::Compare(column, cmp, scalar) => {
            compare(&column_of(column, schema, row), scalar).map(|it| accepts(*cmp, it))
        }
        Predicate::In(column, scalars) => {
            let value = column_of(column, schema, row);
            any(scalars.iter().map(|it| compare(&value, it).map(Ordering::is_eq)))
        }
        Predicate::StartsWith(column, prefix) => match column_of(column, schema, row).0 {
            Value::Text(text) => Some(text.starts_with(prefix)),
            _ => None,
        },
    }
}

fn not(it: Option<bool>) -> Option<bool> {
    it.map(|it| !it)
}

/// True if one is true, else unknown if one is unknown.
fn any(conditions: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let mut unknown = false;
    for it in conditions {
        match it {
            Some(true) => return Some(true),
            Some(false) => (),
            None => unknown = true,
        }
    }
    (!unknown).then_some(false)
}

fn column_of(column: &ColumnPath, schema: &Schema, row: &[Value]) -> (Value, DataType) {
    let Some((top, rest)) = column.0.split_first() else { return (Value::Null, DataType::Null) };
    let Ok(at) = schema.index_of(top) else { return (Value::Null, DataType::Null) };
    let mut found = (&row[at], schema.field(at).data_type());
    for name in rest {
        let DataType::Struct(fields) = found.1 else { return (Value::Null, DataType::Null) };
        let Some((_, field)) = fields.find(name) else { return (Value::Null, DataType::Null) };
        found = (found.0.field(name), field.data_type());
    }
    (found.0.clone(), found.1.clone())
}

fn compare((value, data_type): &(Value, DataType), scalar: &Scalar) -> Option<Ordering> {
    let scalar = coerce::to_type(Value::from(scalar), data_type).ok()?;
    (!value.is_null() && !scalar.is_null()).then(|| value.order(&scalar))
}

fn accepts(cmp: Cmp, order: Ordering) -> bool {
    match cmp {
        Cmp::Eq => order.is_eq(),
        Cmp::NotEq => order.is_ne(),
        Cmp::Lt => order.is_lt(),
        Cmp::LtEq => order.is_le(),
        Cmp::Gt => order.is_gt(),
        Cmp::GtEq => order.is_ge(),
    }
}
