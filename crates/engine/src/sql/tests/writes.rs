//! Statements that write, as text: every field that the parser filled.
use arrow_schema::Field;
use sqlparser::ast::{Expr, Ident};

use super::super::write::{
    Alteration, ColumnChange, ColumnPlace, CreateTable, Insert, InsertMode, NewColumn, PartitionColumn, Point, Write,
};
use crate::{
    dml::{Assignment, Clause, Then, When},
    system::types,
};

pub(super) fn shown(write: &Write) -> String {
    let verb = write.verb();
    match write {
        Write::Insert(it) => insert(verb, it),
        Write::Delete(it) => format!("{verb} {}{}", it.target, optional(" where ", it.predicate.as_ref())),
        Write::Update(it) => {
            format!(
                "{verb} {} set {}{}",
                it.target,
                assignments(&it.assignments),
                optional(" where ", it.predicate.as_ref())
            )
        }
        Write::Merge(it) => {
            let clauses: Vec<String> = it.clauses.iter().map(clause).collect();
            format!("{verb} {} using {} on {}: {}", it.target, it.source, it.on, clauses.join("; "))
        }
        Write::CreateTable(it) => create(verb, it),
        Write::Alter { table, change } => format!("{verb} {table}: {}", alteration(change)),
        Write::DropTable { table, if_exists } => format!("{verb} {table}, if exists {if_exists}"),
        Write::Truncate { table } => format!("{verb} {table}"),
        Write::Optimize { table, filter, dry_run } => {
            let dry = if *dry_run { " dry" } else { "" };
            format!("{verb} {table}{}{dry}", optional(" where ", filter.as_deref()))
        }
        Write::Vacuum(it) => {
            let retain = optional(", hours ", it.retain_hours.as_ref());
            format!("{verb} {}, lite {}, dry run {}{retain}", it.table, it.lite, it.dry_run)
        }
        Write::Restore { table, to: Point::Version(it) } => format!("{verb} {table} to version {it}"),
        Write::Restore { table, to: Point::Time(it) } => format!("{verb} {table} to time {it}"),
        Write::Call(it) => {
            let arguments = it.arguments.iter();
            let arguments: Vec<String> = arguments
                .map(|it| match &it.name {
                    Some(name) => format!("{name} => {}", it.value),
                    None => it.value.to_string(),
                })
                .collect();
            format!("{verb} {}({})", it.procedure.join("."), arguments.join(", "))
        }
        Write::CreateSchema { name, if_not_exists } => {
            format!("{verb} {}, if not exists {if_not_exists}", name.join("."))
        }
        Write::DropSchema { name, if_exists } => format!("{verb} {}, if exists {if_exists}", name.join(".")),
        Write::Refused { verb } => format!("refused: {verb}"),
    }
}

fn optional(label: &str, expr: Option<&Expr>) -> String {
    expr.map(|it| format!("{label}{it}")).unwrap_or_default()
}

fn listed(label: &str, items: Vec<String>) -> String {
    if items.is_empty() { String::new() } else { format!(", {label} ({})", items.join(", ")) }
}

fn insert(verb: &str, it: &Insert) -> String {
    let partition = it.partition.iter().map(|(name, value)| format!("{name}{}", optional(" = ", value.as_ref())));
    let mode = match &it.mode {
        InsertMode::Append | InsertMode::Overwrite => String::new(),
        InsertMode::ReplaceWhere(filter) => format!(", replacing {filter}"),
    };
    let by_name = if it.by_name { ", by name" } else { "" };
    let columns = listed("columns", it.columns.clone());
    format!("{verb} {}{}{columns}{by_name}{mode}: {}", it.target, listed("partition", partition.collect()), it.query)
}

fn path(column: &[Ident]) -> String {
    column.iter().map(|it| it.value.as_str()).collect::<Vec<_>>().join(".")
}

fn assignments(all: &[Assignment]) -> String {
    all.iter().map(|it| format!("{} = {}", path(&it.column), it.value)).collect::<Vec<_>>().join(", ")
}

fn clause(it: &Clause) -> String {
    let when = match it.when {
        When::Matched => "matched",
        When::NotMatched => "not matched",
        When::NotMatchedBySource => "not matched by source",
    };
    let then = match &it.then {
        Then::Update(all) => format!("update {}", assignments(all)),
        Then::UpdateAll => "update all".to_owned(),
        Then::Delete => "delete".to_owned(),
        Then::InsertAll => "insert all".to_owned(),
        Then::Insert { columns, values } => {
            let columns: Vec<String> = columns.iter().map(|it| path(it)).collect();
            let values: Vec<String> = values.iter().map(ToString::to_string).collect();
            format!("insert ({}) values ({})", columns.join(", "), values.join(", "))
        }
    };
    format!("{when}{}: {then}", optional(" and ", it.condition.as_ref()))
}

fn field(it: &Field) -> String {
    let null = if it.is_nullable() { "" } else { " NOT NULL" };
    let comment = it.metadata().get("comment").map(|it| format!(" '{it}'")).unwrap_or_default();
    format!("{} {}{null}{comment}", it.name(), types::name(it))
}

fn create(verb: &str, it: &CreateTable) -> String {
    let columns = it.columns.iter().flatten().map(|it| field(it)).collect();
    let checks = it.checks.iter().map(|(name, expression)| format!("{name}: {expression}")).collect();
    let partition = it.partition.iter().map(|it| match it {
        PartitionColumn::Named(name) => name.clone(),
        PartitionColumn::Typed(it) => field(it),
        PartitionColumn::Transformed { function, column, number } => format!("{function}({number:?}, {column})"),
    });
    let properties = it.properties.iter().map(|(key, value)| format!("{key} = {value}")).collect();
    let words = [("using", &it.format), ("at", &it.location), ("comment", &it.comment)];
    let words: String = words.iter().filter_map(|(label, it)| Some(format!(", {label} {}", it.as_ref()?))).collect();
    let query = it.query.as_ref().map(|it| format!(", as {it}")).unwrap_or_default();
    format!(
        "{verb} {}, {:?}{}{}{}{}{}{words}{query}",
        it.target,
        it.when_there,
        listed("columns", columns),
        listed("key", it.key.clone()),
        listed("checks", checks),
        listed("partition", partition.collect()),
        listed("properties", properties),
    )
}

fn alteration(it: &Alteration) -> String {
    match it {
        Alteration::AddColumns { columns, if_not_exists } => {
            let columns: Vec<String> = columns.iter().map(new_column).collect();
            format!("add {}, if not exists {if_not_exists}", columns.join(", "))
        }
        Alteration::DropColumns { columns, if_exists } => {
            let columns: Vec<String> = columns.iter().map(|it| it.join(".")).collect();
            format!("drop {}, if exists {if_exists}", columns.join(", "))
        }
        Alteration::RenameColumn { from, to } => format!("rename {} to {to}", from.join(".")),
        Alteration::AlterColumn { column, change } => {
            let change = match change {
                ColumnChange::Comment(text) => format!("comment '{text}'"),
                ColumnChange::SetNotNull => "not null".to_owned(),
                ColumnChange::DropNotNull => "null".to_owned(),
                ColumnChange::Type(it) => format!("type {}", types::name(it)),
                ColumnChange::Place(it) => place(Some(it)),
            };
            format!("column {}: {change}", column.join("."))
        }
        Alteration::SetProperties(set) => format!("set {set:?}"),
        Alteration::UnsetProperties { keys, if_exists } => format!("unset {keys:?}, if exists {if_exists}"),
        Alteration::AddConstraint { name, expression } => format!("constraint {name}: {expression}"),
        Alteration::DropConstraint { name, if_exists } => format!("no constraint {name}, if exists {if_exists}"),
        Alteration::RenameTo(to) => format!("rename to {to}"),
        Alteration::AddFeature(name) => format!("feature {name}"),
        Alteration::Comment(text) => format!("comment {text:?}"),
    }
}

fn new_column(it: &NewColumn) -> String {
    format!("{} ({}){}", it.path.join("."), field(&it.field), place(it.place.as_ref()))
}

fn place(place: Option<&ColumnPlace>) -> String {
    match place {
        None => String::new(),
        Some(ColumnPlace::First) => " first".to_owned(),
        Some(ColumnPlace::After(name)) => format!(" after {name}"),
    }
}
