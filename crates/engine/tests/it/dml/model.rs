//! What statements mean, row by row: slow, and obvious enough to be believed.
use std::fmt;

/// `id`, `v` and `p`, which may partition the table.
pub(super) type Row = [Option<i64>; 3];

pub(super) const COLUMNS: [&str; 3] = ["id", "v", "p"];

/// The row of the target, where there is one, and that of the source; the ids of a third table.
#[derive(Clone, Copy)]
pub(super) struct Scope<'a> {
    pub(super) t: Option<&'a Row>,
    pub(super) s: Option<&'a Row>,
    pub(super) others: &'a [Option<i64>],
}

#[derive(Debug, Clone)]
pub(super) enum Value {
    T(usize),
    S(usize),
    Number(i64),
    Null,
    Plus(Box<Value>, i64),
    /// `(SELECT max(id) FROM other)`.
    MaxOfOthers,
}

#[derive(Debug, Clone)]
pub(super) enum Cond {
    Less(Value, Value),
    Equal(Value, Value),
    IsNull(Value),
    And(Box<Cond>, Box<Cond>),
    Or(Box<Cond>, Box<Cond>),
    Not(Box<Cond>),
    /// `value IN (SELECT id FROM other)`.
    InOthers(Value),
    /// `EXISTS (SELECT 1 FROM other WHERE other.id = value)`.
    ExistsOther(Value),
}

impl Value {
    pub(super) fn of(&self, scope: Scope<'_>) -> Option<i64> {
        match self {
            Self::T(at) => scope.t.and_then(|it| it[*at]),
            Self::S(at) => scope.s.and_then(|it| it[*at]),
            Self::Number(it) => Some(*it),
            Self::Null => None,
            Self::Plus(value, more) => value.of(scope).map(|it| it + more),
            Self::MaxOfOthers => scope.others.iter().copied().flatten().max(),
        }
    }
}

impl Cond {
    /// True, false, or null.
    pub(super) fn of(&self, scope: Scope<'_>) -> Option<bool> {
        match self {
            Self::Less(a, b) => Some(a.of(scope)? < b.of(scope)?),
            Self::Equal(a, b) => Some(a.of(scope)? == b.of(scope)?),
            Self::IsNull(value) => Some(value.of(scope).is_none()),
            Self::And(a, b) => match (a.of(scope), b.of(scope)) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (Some(true), Some(true)) => Some(true),
                _ => None,
            },
            Self::Or(a, b) => match (a.of(scope), b.of(scope)) {
                (Some(true), _) | (_, Some(true)) => Some(true),
                (Some(false), Some(false)) => Some(false),
                _ => None,
            },
            Self::Not(it) => it.of(scope).map(|it| !it),
            Self::InOthers(value) => match value.of(scope) {
                _ if scope.others.is_empty() => Some(false),
                None => None,
                value if scope.others.contains(&value) => Some(true),
                _ if scope.others.contains(&None) => None,
                _ => Some(false),
            },
            Self::ExistsOther(value) => Some(value.of(scope).is_some_and(|it| scope.others.contains(&Some(it)))),
        }
    }

    pub(super) fn holds(&self, scope: Scope<'_>) -> bool {
        self.of(scope) == Some(true)
    }
}

#[derive(Debug, Clone)]
pub(super) enum Statement {
    Delete(Option<Cond>),
    Update(Vec<(usize, Value)>, Option<Cond>),
    Merge(Cond, Vec<Clause>),
}

#[derive(Debug, Clone)]
pub(super) struct Clause {
    pub(super) when: When,
    pub(super) condition: Option<Cond>,
    pub(super) then: Then,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum When {
    Matched,
    NotMatched,
    NotMatchedBySource,
}

#[derive(Debug, Clone)]
pub(super) enum Then {
    Update(Vec<(usize, Value)>),
    UpdateAll,
    Delete,
    /// The columns that are not named are null.
    Insert(Vec<(usize, Value)>),
    InsertAll,
}

/// What a statement does to a table's rows; the kinds of change with the rows.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Effect {
    pub(super) rows: Vec<Row>,
    pub(super) inserted: Vec<Row>,
    pub(super) deleted: Vec<Row>,
    /// Before and after.
    pub(super) updated: Vec<(Row, Row)>,
}

/// A row of the target would be changed twice.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Twice;

impl Statement {
    pub(super) fn apply(&self, target: &[Row], source: &[Row], others: &[Option<i64>]) -> Result<Effect, Twice> {
        let mut effect = Effect::default();
        let meets = |row: &Row, cond: &Option<Cond>| {
            cond.as_ref().is_none_or(|it| it.holds(Scope { t: Some(row), s: None, others }))
        };
        match self {
            Self::Delete(cond) => {
                for row in target {
                    match meets(row, cond) {
                        true => effect.deleted.push(*row),
                        false => effect.rows.push(*row),
                    }
                }
            }
            Self::Update(assignments, cond) => {
                for row in target {
                    match meets(row, cond) {
                        true => {
                            effect.update(*row, assigned(row, assignments, Scope { t: Some(row), s: None, others }))
                        }
                        false => effect.rows.push(*row),
                    }
                }
            }
            Self::Merge(on, clauses) => merge(&mut effect, on, clauses, target, source, others)?,
        }
        Ok(effect)
    }
}

impl Effect {
    fn update(&mut self, before: Row, after: Row) {
        self.rows.push(after);
        self.updated.push((before, after));
    }

    pub(super) fn count(&self) -> usize {
        self.inserted.len() + self.deleted.len() + self.updated.len()
    }
}

fn merge(
    effect: &mut Effect,
    on: &Cond,
    clauses: &[Clause],
    target: &[Row],
    source: &[Row],
    others: &[Option<i64>],
) -> Result<(), Twice> {
    let first = |when, scope: Scope<'_>| {
        let applies = |it: &&Clause| it.when == when && it.condition.as_ref().is_none_or(|it| it.holds(scope));
        clauses.iter().find(applies).map(|it| &it.then)
    };
    let matched: Vec<&Clause> = clauses.iter().filter(|it| it.when == When::Matched).collect();
    let only_deletes = matches!(matched.as_slice(), [Clause { condition: None, then: Then::Delete, .. }]);
    for row in target {
        let scope = |s| Scope { t: Some(row), s, others };
        let partners: Vec<&Row> = source.iter().filter(|it| on.holds(scope(Some(it)))).collect();
        let mut changes: Vec<(&Then, Scope<'_>)> = match partners.is_empty() {
            true => first(When::NotMatchedBySource, scope(None)).map(|it| (it, scope(None))).into_iter().collect(),
            false => partners
                .iter()
                .filter_map(|it| first(When::Matched, scope(Some(it))).map(|then| (then, scope(Some(it)))))
                .collect(),
        };
        if only_deletes {
            changes.truncate(1);
        }
        match changes.as_slice() {
            [] => effect.rows.push(*row),
            [(then, scope)] => match then {
                Then::Delete => effect.deleted.push(*row),
                Then::Update(assignments) => effect.update(*row, assigned(row, assignments, *scope)),
                Then::UpdateAll => effect.update(*row, *scope.s.expect("matched")),
                Then::Insert(_) | Then::InsertAll => unreachable!("there is a row"),
            },
            _ => return Err(Twice),
        }
    }
    for row in source {
        let scope = |t| Scope { t, s: Some(row), others };
        if target.iter().any(|it| on.holds(scope(Some(it)))) {
            continue;
        }
        let new = match first(When::NotMatched, scope(None)) {
            None => continue,
            Some(Then::InsertAll) => *row,
            Some(Then::Insert(values)) => assigned(&[None; 3], values, scope(None)),
            Some(_) => unreachable!("there is no row to change"),
        };
        effect.rows.push(new);
        effect.inserted.push(new);
    }
    Ok(())
}

fn assigned(row: &Row, assignments: &[(usize, Value)], scope: Scope<'_>) -> Row {
    let mut row = *row;
    for (column, value) in assignments {
        row[*column] = value.of(scope);
    }
    row
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::T(at) => write!(f, "t.{}", COLUMNS[*at]),
            Self::S(at) => write!(f, "s.{}", COLUMNS[*at].to_uppercase()),
            Self::Number(it) => write!(f, "{it}"),
            Self::Null => f.write_str("NULL"),
            Self::Plus(value, more) => write!(f, "({value} + {more})"),
            Self::MaxOfOthers => f.write_str("(SELECT max(id) FROM '/lake/other')"),
        }
    }
}

impl fmt::Display for Cond {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Less(a, b) => write!(f, "{a} < {b}"),
            Self::Equal(a, b) => write!(f, "{a} = {b}"),
            Self::IsNull(it) => write!(f, "{it} IS NULL"),
            Self::And(a, b) => write!(f, "({a} AND {b})"),
            Self::Or(a, b) => write!(f, "({a} OR {b})"),
            Self::Not(it) => write!(f, "NOT ({it})"),
            Self::InOthers(it) => write!(f, "{it} IN (SELECT id FROM '/lake/other')"),
            Self::ExistsOther(it) => write!(f, "EXISTS (SELECT 1 FROM '/lake/other' AS o WHERE o.id = {it})"),
        }
    }
}

impl fmt::Display for Statement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let filter = |cond: &Option<Cond>| cond.as_ref().map_or_else(String::new, |it| format!(" WHERE {it}"));
        match self {
            Self::Delete(cond) => write!(f, "DELETE FROM '/lake/t' AS t{}", filter(cond)),
            Self::Update(assignments, cond) => {
                write!(f, "UPDATE '/lake/t' AS t SET {}{}", listed(assignments), filter(cond))
            }
            Self::Merge(on, clauses) => {
                write!(f, "MERGE INTO '/lake/t' AS t USING '/lake/s' AS s ON {on}")?;
                clauses.iter().try_for_each(|it| write!(f, " {it}"))
            }
        }
    }
}

impl fmt::Display for Clause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.when {
            When::Matched => "WHEN MATCHED",
            When::NotMatched => "WHEN NOT MATCHED",
            When::NotMatchedBySource => "WHEN NOT MATCHED BY SOURCE",
        })?;
        if let Some(cond) = &self.condition {
            write!(f, " AND {cond}")?;
        }
        match &self.then {
            Then::Update(assignments) => write!(f, " THEN UPDATE SET {}", listed(assignments)),
            Then::UpdateAll => f.write_str(" THEN UPDATE SET *"),
            Then::Delete => f.write_str(" THEN DELETE"),
            Then::InsertAll => f.write_str(" THEN INSERT *"),
            Then::Insert(values) => {
                let columns: Vec<&str> = values.iter().map(|it| COLUMNS[it.0]).collect();
                let values: Vec<String> = values.iter().map(|it| it.1.to_string()).collect();
                write!(f, " THEN INSERT ({}) VALUES ({})", columns.join(", "), values.join(", "))
            }
        }
    }
}

fn listed(assignments: &[(usize, Value)]) -> String {
    let each = |(at, value): &(usize, Value)| format!("{} = {value}", COLUMNS[*at]);
    assignments.iter().map(each).collect::<Vec<_>>().join(", ")
}
