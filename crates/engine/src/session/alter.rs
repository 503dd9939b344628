//! `ALTER TABLE`: one commit of metadata.
//!
//! 1. Begin a write; what it began on is what the statement changes.
//! 2. Make of it what the statement says: another schema, properties, a constraint, a feature. Nothing to change is no
//!    commit.
//! 3. What every row must meet from now on is asked of the rows that are there; then all of them count as read, so that
//!    no row of another writer slips in between.
//! 4. A property or constraint that needs a feature of the table's format asks for that feature; nothing else does.
//! 5. Commit.
use std::{collections::BTreeMap, ops::ControlFlow, sync::Arc};

use arrow_schema::Schema;
use datafusion::{execution::TaskContext, physical_plan::collect};
use lakebed_core::{Error, Result, change::Change, expr::Predicate, table::Snapshot, timeline::Action};
use serde_json::json;
use sqlparser::ast::{Expr, ObjectName, ObjectNamePart, SetExpr, TableFactor, visit_expressions};

use super::{Destination, Session, TARGET, columns};
use crate::{
    error::of_datafusion,
    sql::{
        parse::{own_query, quoted},
        scope,
        write::{Alteration, ColumnChange, Target},
    },
    write::{Driver, Prepared},
};

/// The property that is the table's comment.
const COMMENT: &str = "comment";

/// What a statement commits, and what the rows that are there must meet for it.
#[derive(Default)]
struct Plan {
    changes: Vec<Change>,
    /// Boolean SQL that must be true, and whether null passes; with what to say where it is not.
    must_hold: Option<(Expr, bool, String)>,
}

impl Session {
    pub(super) async fn alter_table(&self, target: &Target, change: &Alteration) -> Result<()> {
        let (to, context) = self.writing(target).await?;
        let (operation, parameters) = described(change);
        let intent = self.intent(action(change), operation, parameters)?;
        let driver = Driver::begin(&context, intent).await?;
        let prepared = self.prepare(&to, driver.base(), change).await;
        driver.conclude(prepared).await.map(|_| ())
    }

    async fn prepare(&self, to: &Destination, base: &Arc<dyn Snapshot>, change: &Alteration) -> Result<Prepared> {
        let mut plan = plan(to, base.as_ref(), change)?;
        // Who sets a property asks for the feature that it turns on.
        let features = base.features_for(&plan.changes);
        if !features.is_empty() {
            tracing::warn!(
                "the table is upgraded to {}: engines that lack it can no longer write to it",
                features.join(", ")
            );
            plan.changes.insert(0, Change::Upgrade { features });
        }
        let mut read = None;
        if let Some((condition, null_passes, message)) = plan.must_hold {
            read = Some(Predicate::True);
            if self.some_row_fails(to, base, condition, null_passes).await? {
                return Err(Error::invalid(message).with_hint("nothing was changed; UPDATE or DELETE those rows first"));
            }
        }
        Ok(Prepared { changes: plan.changes, read, ..Prepared::default() })
    }

    /// Whether a row of the table at `base` does not meet `condition`.
    async fn some_row_fails(
        &self,
        to: &Destination,
        base: &Arc<dyn Snapshot>,
        condition: Expr,
        null_passes: bool,
    ) -> Result<bool> {
        let nested = Box::new(Expr::Nested(Box::new(condition)));
        let fails = match null_passes {
            true => Expr::IsFalse(nested),
            false => Expr::IsNotTrue(nested),
        };
        let mut query = *own_query("SELECT 1 FROM target LIMIT 1")?;
        if let SetExpr::Select(select) = query.body.as_mut() {
            select.selection = Some(fails);
            for from in &mut select.from {
                if let TableFactor::Table { name, .. } = &mut from.relation {
                    *name = ObjectName(vec![ObjectNamePart::Identifier(quoted(TARGET))]);
                }
            }
        }
        let given = to.given(self, Arc::clone(base))?;
        let planned = self.planned_given(query, &given).await?;
        let plan = planned.state.create_physical_plan(&planned.plan).await.map_err(of_datafusion)?;
        let found = collect(plan, Arc::new(TaskContext::from(&planned.state))).await.map_err(of_datafusion)?;
        Ok(found.iter().any(|it| it.num_rows() > 0))
    }
}

fn plan(to: &Destination, base: &dyn Snapshot, change: &Alteration) -> Result<Plan> {
    let schema = base.schema();
    match change {
        Alteration::AddColumns { columns, if_not_exists } => {
            Ok(Plan::schema(columns::add(schema, columns, *if_not_exists)?))
        }
        Alteration::DropColumns { columns, if_exists } => {
            for path in columns {
                if let Ok(path) = columns::spelled(schema, path) {
                    unused(base, &path, "dropped")?;
                }
            }
            Ok(Plan::schema(columns::drop(schema, columns, *if_exists)?))
        }
        Alteration::RenameColumn { from, to } => {
            constrained(base, &columns::spelled(schema, from)?, "renamed")?;
            Ok(Plan::schema(Some(columns::rename(schema, from, to)?)))
        }
        Alteration::AlterColumn { column, change } => alter_column(base, column, change),
        Alteration::SetProperties(set) => set_properties(to, set),
        Alteration::UnsetProperties { keys, if_exists } => unset_properties(base, keys, *if_exists),
        Alteration::AddConstraint { name, expression } => add_constraint(base, name, expression),
        Alteration::DropConstraint { name, if_exists } => drop_constraint(base, name, *if_exists),
        Alteration::AddFeature(name) => Ok(Plan::of(Change::Upgrade { features: vec![name.clone()] })),
        Alteration::Comment(text) => Ok(Plan::of(match text {
            Some(text) => {
                Change::Properties { set: BTreeMap::from([(COMMENT.to_owned(), text.clone())]), unset: Vec::new() }
            }
            None => Change::Properties { set: BTreeMap::new(), unset: vec![COMMENT.to_owned()] },
        })),
        Alteration::RenameTo(_) => Err(Error::internal("a table is renamed by its catalog")),
    }
}

impl Plan {
    fn of(change: Change) -> Self {
        Self { changes: vec![change], must_hold: None }
    }

    fn schema(schema: Option<Schema>) -> Self {
        Self { changes: schema.into_iter().map(|it| Change::Schema(Arc::new(it))).collect(), must_hold: None }
    }
}

fn alter_column(base: &dyn Snapshot, column: &[String], change: &ColumnChange) -> Result<Plan> {
    let path = columns::spelled(base.schema(), column)?;
    let schema = columns::alter(base.schema(), column, change)?;
    if schema == *base.schema().as_ref() {
        return Ok(Plan::default());
    }
    match change {
        ColumnChange::SetNotNull => {
            if path.len() > 1 {
                let name = path.join(".");
                return Err(Error::unsupported(format!(
                    "SET NOT NULL on the field `{name}`: a field's rows are not checked"
                )));
            }
            let holds = Expr::IsNotNull(Box::new(Expr::Identifier(quoted(&path[0]))));
            let message = format!("column `{}` has nulls: it cannot be NOT NULL", path[0]);
            Ok(Plan { must_hold: Some((holds, false, message)), ..Plan::schema(Some(schema)) })
        }
        ColumnChange::Type(_) => {
            constrained(base, &path, "changed")?;
            Ok(Plan::schema(Some(schema)))
        }
        ColumnChange::Comment(_) | ColumnChange::DropNotNull | ColumnChange::Place(_) => Ok(Plan::schema(Some(schema))),
    }
}

/// A property `<format>.feature.<name>` asks for that feature; every other one is set.
fn set_properties(to: &Destination, properties: &BTreeMap<String, String>) -> Result<Plan> {
    let prefix = format!("{}.feature.", to.table.format());
    let mut features = Vec::new();
    let mut set = BTreeMap::new();
    for (key, value) in properties {
        match strip_prefix(key, &prefix) {
            Some(feature) if ["supported", "enabled"].contains(&value.to_lowercase().as_str()) => {
                features.push(feature.to_owned());
            }
            Some(_) => {
                return Err(Error::invalid(format!("property `{key}` can be 'supported', not '{value}'"))
                    .with_hint("a feature is added and never taken away"));
            }
            None => {
                set.insert(key.clone(), value.clone());
            }
        }
    }
    let mut changes = Vec::new();
    if !features.is_empty() {
        changes.push(Change::Upgrade { features });
    }
    if !set.is_empty() {
        changes.push(Change::Properties { set, unset: Vec::new() });
    }
    Ok(Plan { changes, must_hold: None })
}

fn strip_prefix<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let (start, rest) = text.split_at_checked(prefix.len())?;
    start.eq_ignore_ascii_case(prefix).then_some(rest)
}

fn unset_properties(base: &dyn Snapshot, keys: &[String], if_exists: bool) -> Result<Plan> {
    let known = base.properties();
    if let Some(missing) = keys.iter().find(|it| !known.contains_key(*it) && !if_exists) {
        let error = Error::invalid(format!("the table has no property `{missing}`"));
        return Err(match crate::text::did_you_mean(missing, known.keys().map(String::as_str)) {
            Some(near) => error.with_hint(format!("did you mean `{near}`?")),
            None => error.with_hint("UNSET TBLPROPERTIES IF EXISTS (…) does without"),
        });
    }
    let unset: Vec<String> = keys.iter().filter(|it| known.contains_key(*it)).cloned().collect();
    match unset.is_empty() {
        true => Ok(Plan::default()),
        false => Ok(Plan::of(Change::Properties { set: BTreeMap::new(), unset })),
    }
}

fn add_constraint(base: &dyn Snapshot, name: &str, expression: &str) -> Result<Plan> {
    let rules = base.write_rules()?;
    if let Some(there) = rules.constraints.iter().find(|it| scope::same(&it.name, name)) {
        let message = format!("there is a constraint `{}`: {}", there.name, there.expression);
        return Err(Error::new(lakebed_core::ErrorKind::AlreadyExists, message));
    }
    let condition = crate::sql::parse::expression(expression)?;
    let message = format!("a row of the table breaks `{name}`: {expression}");
    let change = Change::AddConstraint { name: name.to_owned(), expression: expression.to_owned() };
    Ok(Plan { must_hold: Some((condition, false, message)), ..Plan::of(change) })
}

fn drop_constraint(base: &dyn Snapshot, name: &str, if_exists: bool) -> Result<Plan> {
    let rules = base.write_rules()?;
    let names = || rules.constraints.iter().map(|it| it.name.as_str());
    match names().find(|it| scope::same(it, name)) {
        Some(found) => Ok(Plan::of(Change::DropConstraint { name: found.to_owned() })),
        None if if_exists => Ok(Plan::default()),
        None => {
            let error = Error::invalid(format!("the table has no constraint `{name}`"));
            Err(match crate::text::did_you_mean(name, names()) {
                Some(near) => error.with_hint(format!("did you mean `{near}`?")),
                None => error,
            })
        }
    }
}

/// Refuses to take away a column that the table is laid out by, or that a constraint names.
fn unused(base: &dyn Snapshot, path: &[String], what: &str) -> Result<()> {
    let layout = base.layout();
    let sources = layout.partition.iter().map(|it| &it.source).chain(&layout.key).chain(&layout.sort);
    if sources.into_iter().any(|it| it.0.starts_with(path)) {
        return Err(Error::invalid(format!("the table is laid out by `{}`: it cannot be {what}", path.join("."))));
    }
    constrained(base, path, what)
}

fn constrained(base: &dyn Snapshot, path: &[String], what: &str) -> Result<()> {
    for constraint in base.write_rules()?.constraints {
        let expression = crate::sql::parse::expression(&constraint.expression)?;
        let used = columns_named(&expression);
        // `a.b` may also be field `b` of column `a`: whoever names either is taken to name both.
        if used.iter().any(|it| it.iter().zip(path).all(|(a, b)| scope::same(a, b))) {
            let (name, path) = (&constraint.name, path.join("."));
            return Err(Error::invalid(format!("constraint `{name}` is about `{path}`: it cannot be {what}"))
                .with_hint(format!("ALTER TABLE … DROP CONSTRAINT {name} first")));
        }
    }
    Ok(())
}

/// Every column that an expression names, as written.
fn columns_named(expression: &Expr) -> Vec<Vec<String>> {
    let mut named = Vec::new();
    let _ = visit_expressions(expression, |it| {
        match it {
            Expr::Identifier(ident) => named.push(vec![ident.value.clone()]),
            Expr::CompoundIdentifier(parts) => named.push(parts.iter().map(|it| it.value.clone()).collect()),
            _ => (),
        }
        ControlFlow::<()>::Continue(())
    });
    named
}

fn action(change: &Alteration) -> Action {
    match change {
        Alteration::AddColumns { .. }
        | Alteration::DropColumns { .. }
        | Alteration::RenameColumn { .. }
        | Alteration::AlterColumn { .. } => Action::Schema,
        _ => Action::Properties,
    }
}

/// The operation and its parameter, as Spark's history shows them.
fn described(change: &Alteration) -> (&'static str, [(&'static str, String); 1]) {
    let dotted = |it: &Vec<String>| it.join(".");
    match change {
        Alteration::AddColumns { columns, .. } => {
            let names: Vec<String> = columns.iter().map(|it| it.path.join(".")).collect();
            ("ADD COLUMNS", [("columns", json!(names).to_string())])
        }
        Alteration::DropColumns { columns, .. } => {
            let names: Vec<String> = columns.iter().map(dotted).collect();
            ("DROP COLUMNS", [("columns", json!(names).to_string())])
        }
        Alteration::RenameColumn { from, to } => {
            ("RENAME COLUMN", [("column", json!({"from": from.join("."), "to": to}).to_string())])
        }
        Alteration::AlterColumn { column, .. } => ("CHANGE COLUMN", [("column", json!(column.join(".")).to_string())]),
        Alteration::SetProperties(set) => ("SET TBLPROPERTIES", [("properties", json!(set).to_string())]),
        Alteration::UnsetProperties { keys, .. } => ("UNSET TBLPROPERTIES", [("properties", json!(keys).to_string())]),
        Alteration::AddConstraint { name, expression } => {
            ("ADD CONSTRAINT", [("constraint", json!({"name": name, "expr": expression}).to_string())])
        }
        Alteration::DropConstraint { name, .. } => ("DROP CONSTRAINT", [("name", json!(name).to_string())]),
        Alteration::AddFeature(name) => ("ADD FEATURE", [("featureName", json!(name).to_string())]),
        Alteration::Comment(text) => ("SET TBLPROPERTIES", [("properties", json!({"comment": text}).to_string())]),
        Alteration::RenameTo(to) => ("RENAME TABLE", [("to", json!(to.to_string()).to_string())]),
    }
}
