//! From DataFusion's expressions to the predicates that formats prune with.
//!
//! Lowering is exact, or weakened to a condition that every wanted row still meets; it says which. What cannot be said
//! becomes `True`. `NOT` stands only above what is exact: the opposite of a weakened condition would drop rows.
//!
//! A constant counts only if it has its equal in the column's own type, and a cast around a column only if it keeps
//! every value and their order.
use arrow_schema::{DataType, Schema};
use datafusion::{
    common::Column,
    logical_expr::{
        Between, BinaryExpr, Expr, Like, Operator,
        expr::{InList, ScalarFunction},
    },
    scalar::ScalarValue,
};
use lakebed_core::expr::{Cmp, ColumnPath, Predicate, Scalar};

use crate::scan::from_arrow;

/// A predicate, and whether it says all that the expression said.
#[derive(Debug, Clone, PartialEq)]
pub struct Lowered {
    pub predicate: Predicate,
    /// Whether predicate and expression agree on every row, null included.
    pub exact: bool,
}

impl Lowered {
    fn exact(predicate: Predicate) -> Self {
        Self { predicate, exact: true }
    }

    fn weak(predicate: Predicate) -> Self {
        Self { predicate, exact: false }
    }

    fn unknown() -> Self {
        Self::weak(Predicate::True)
    }

    fn not(self) -> Self {
        match self.exact {
            true => Self::exact(Predicate::Not(Box::new(self.predicate))),
            false => Self::unknown(),
        }
    }

    fn not_if(self, negated: bool) -> Self {
        if negated { self.not() } else { self }
    }
}

/// All of `filters` as one predicate over the columns of `table`.
pub fn lower_all(filters: &[Expr], table: &Schema) -> Lowered {
    all(filters.iter().map(|it| lower(it, table)).collect())
}

/// `expr` as a predicate over the columns of `table`, whose names it uses; other columns are not lowered.
pub fn lower(expr: &Expr, table: &Schema) -> Lowered {
    match expr {
        Expr::Literal(value, _) => constant(value),
        Expr::Alias(it) => lower(&it.expr, table),
        Expr::Column(_) => boolean_column(expr, table),
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::And, right }) => {
            all(vec![lower(left, table), lower(right, table)])
        }
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Or, right }) => any(lower(left, table), lower(right, table)),
        Expr::BinaryExpr(it) => comparison(it, table),
        Expr::Not(it) => lower(it, table).not(),
        Expr::IsNull(it) => is_null(it, table),
        Expr::IsNotNull(it) => is_null(it, table).not(),
        Expr::IsTrue(it) => Lowered { exact: false, ..lower(it, table) },
        Expr::InList(it) => in_list(it, table),
        Expr::Between(it) => between(it, table),
        Expr::Like(it) => like(it, table),
        Expr::ScalarFunction(it) if it.name() == "starts_with" => starts_with(it, table),
        _ => Lowered::unknown(),
    }
}

fn all(parts: Vec<Lowered>) -> Lowered {
    let exact = parts.iter().all(|it| it.exact);
    let mut said: Vec<_> = parts.into_iter().map(|it| it.predicate).filter(|it| *it != Predicate::True).collect();
    let predicate = match said.len() {
        0 => Predicate::True,
        1 => said.remove(0),
        _ => Predicate::And(said),
    };
    Lowered { predicate, exact }
}

fn any(left: Lowered, right: Lowered) -> Lowered {
    let exact = left.exact && right.exact;
    match (left.predicate, right.predicate) {
        (Predicate::True, _) | (_, Predicate::True) => Lowered { predicate: Predicate::True, exact },
        (left, right) => Lowered { predicate: Predicate::Or(vec![left, right]), exact },
    }
}

fn constant(value: &ScalarValue) -> Lowered {
    match value {
        ScalarValue::Boolean(Some(true)) => Lowered::exact(Predicate::True),
        ScalarValue::Boolean(Some(false)) => Lowered::exact(Predicate::False),
        // Null wants no row, but its opposite wants none either.
        value if value.is_null() => Lowered::weak(Predicate::False),
        _ => Lowered::unknown(),
    }
}

fn boolean_column(expr: &Expr, table: &Schema) -> Lowered {
    match column(expr, table) {
        Some((path, DataType::Boolean)) => Lowered::exact(Predicate::Compare(path, Cmp::Eq, Scalar::Boolean(true))),
        _ => Lowered::unknown(),
    }
}

fn is_null(expr: &Expr, table: &Schema) -> Lowered {
    match column(expr, table) {
        // A field of a null struct is null too, which counts of the field alone do not tell.
        Some((path, _)) if path.0.len() == 1 => Lowered::exact(Predicate::IsNull(path)),
        _ => Lowered::unknown(),
    }
}

fn comparison(it: &BinaryExpr, table: &Schema) -> Lowered {
    let (side, op, value) = match (it.left.as_ref(), it.right.as_ref()) {
        (side, Expr::Literal(value, _)) => (side, it.op, value),
        (Expr::Literal(value, _), side) => match it.op.swap() {
            Some(op) => (side, op, value),
            None => return Lowered::unknown(),
        },
        _ => return Lowered::unknown(),
    };
    let cmp = match op {
        Operator::Eq => Cmp::Eq,
        Operator::NotEq => Cmp::NotEq,
        Operator::Lt => Cmp::Lt,
        Operator::LtEq => Cmp::LtEq,
        Operator::Gt => Cmp::Gt,
        Operator::GtEq => Cmp::GtEq,
        Operator::IsNotDistinctFrom if value.is_null() => return is_null(side, table),
        Operator::IsNotDistinctFrom => Cmp::Eq,
        _ => return Lowered::unknown(),
    };
    if value.is_null() {
        return Lowered::weak(Predicate::False);
    }
    let exact = op != Operator::IsNotDistinctFrom;
    match operand(side, table).and_then(|(path, kind)| Some((path, in_type(value, &kind)?, kind))) {
        // Order and equality of NaN and negative zero differ between engines.
        Some((path, value, kind)) => {
            Lowered { predicate: Predicate::Compare(path, cmp, value), exact: exact && !kind.is_floating() }
        }
        None => Lowered::unknown(),
    }
}

fn in_list(it: &InList, table: &Schema) -> Lowered {
    let Some((path, kind)) = operand(&it.expr, table) else { return Lowered::unknown() };
    let mut values = Vec::new();
    let mut exact = !kind.is_floating();
    for each in &it.list {
        match each {
            Expr::Literal(value, _) if value.is_null() => exact = false,
            Expr::Literal(value, _) => match in_type(value, &kind) {
                Some(value) => values.push(value),
                None => return Lowered::unknown(),
            },
            _ => return Lowered::unknown(),
        }
    }
    Lowered { predicate: Predicate::In(path, values), exact }.not_if(it.negated)
}

fn between(it: &Between, table: &Schema) -> Lowered {
    let bound = |op, bound: &Expr| BinaryExpr::new(it.expr.clone(), op, Box::new(bound.clone()));
    let low = comparison(&bound(Operator::GtEq, &it.low), table);
    let high = comparison(&bound(Operator::LtEq, &it.high), table);
    all(vec![low, high]).not_if(it.negated)
}

fn like(it: &Like, table: &Schema) -> Lowered {
    let (Expr::Literal(pattern, _), false, None) = (it.pattern.as_ref(), it.case_insensitive, it.escape_char) else {
        return Lowered::unknown();
    };
    let (Some(Some(pattern)), Some((path, kind))) = (pattern.try_as_str(), operand(&it.expr, table)) else {
        return Lowered::unknown();
    };
    if !kind.is_string() {
        return Lowered::unknown();
    }
    let end = pattern.find(['%', '_', '\\']).unwrap_or(pattern.len());
    let (prefix, rest) = pattern.split_at(end);
    let lowered = match rest {
        "" => Lowered::exact(Predicate::Compare(path, Cmp::Eq, Scalar::Utf8(prefix.to_owned()))),
        _ if prefix.is_empty() => Lowered::unknown(),
        "%" => Lowered::exact(Predicate::StartsWith(path, prefix.to_owned())),
        _ => Lowered::weak(Predicate::StartsWith(path, prefix.to_owned())),
    };
    lowered.not_if(it.negated)
}

fn starts_with(it: &ScalarFunction, table: &Schema) -> Lowered {
    let [text, Expr::Literal(prefix, _)] = it.args.as_slice() else { return Lowered::unknown() };
    match (operand(text, table), prefix.try_as_str()) {
        (Some((path, kind)), Some(Some(prefix))) if kind.is_string() => {
            Lowered::exact(Predicate::StartsWith(path, prefix.to_owned()))
        }
        _ => Lowered::unknown(),
    }
}

/// A column, perhaps in a cast that keeps values and order, with its own type.
fn operand(expr: &Expr, table: &Schema) -> Option<(ColumnPath, DataType)> {
    match expr {
        Expr::Alias(it) => operand(&it.expr, table),
        Expr::Cast(cast) => {
            let (path, kind) = operand(&cast.expr, table)?;
            keeps_order(&kind, cast.field.data_type()).then_some((path, kind))
        }
        _ => column(expr, table),
    }
}

/// A column of the table, through structs, with its type.
fn column(expr: &Expr, table: &Schema) -> Option<(ColumnPath, DataType)> {
    match expr {
        Expr::Column(Column { name, .. }) => {
            let field = table.field_with_name(name).ok()?;
            Some((ColumnPath::top(name), field.data_type().clone()))
        }
        Expr::ScalarFunction(it) if it.name() == "get_field" => {
            let (source, keys) = it.args.split_first()?;
            let (mut path, mut kind) = column(source, table)?;
            for key in keys {
                let Expr::Literal(key, _) = key else { return None };
                let DataType::Struct(fields) = &kind else { return None };
                let (_, field) = fields.find(key.try_as_str()??)?;
                path.0.push(field.name().clone());
                kind = field.data_type().clone();
            }
            Some((path, kind))
        }
        _ => None,
    }
}

fn keeps_order(from: &DataType, to: &DataType) -> bool {
    use DataType as T;
    match (from, to) {
        (from, to) if from == to => true,
        (from, to) if from.is_string() && to.is_string() => true,
        (from, to) if is_binary(from) && is_binary(to) => true,
        (T::Int8, T::Int16 | T::Int32 | T::Int64 | T::Float64) => true,
        (T::Int16, T::Int32 | T::Int64 | T::Float64) => true,
        (T::Int32, T::Int64 | T::Float64) => true,
        (T::Int8 | T::Int16 | T::Int32 | T::Int64, T::Decimal128(precision, scale)) => {
            i16::from(*precision) - i16::from(*scale) >= 19
        }
        (T::Decimal128(p1, s1), T::Decimal128(p2, s2)) => {
            s2 >= s1 && i16::from(*p2) - i16::from(*s2) >= i16::from(*p1) - i16::from(*s1)
        }
        (T::Timestamp(_, a), T::Timestamp(_, b)) => a.is_some() == b.is_some(),
        _ => false,
    }
}

fn is_binary(kind: &DataType) -> bool {
    matches!(kind, DataType::Binary | DataType::LargeBinary | DataType::BinaryView)
}

/// The constant in the column's type; `None` unless it is exactly equal there.
fn in_type(value: &ScalarValue, kind: &DataType) -> Option<Scalar> {
    if value.data_type() == *kind || value.data_type().is_string() && kind.is_string() {
        return from_arrow(value);
    }
    let comparable = value.data_type().is_numeric() == kind.is_numeric() && !value.data_type().is_string();
    let cast = value.cast_to(kind).ok().filter(|it| comparable && !it.is_null())?;
    (cast.cast_to(&value.data_type()).ok()? == *value).then(|| from_arrow(&cast))?
}

#[cfg(test)]
mod tests;
