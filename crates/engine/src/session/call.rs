//! `CALL system.…`: upkeep and tags as procedures, under the names that several dialects have for them.
//!
//! | procedure | arguments after `table` |
//! |---|---|
//! | `vacuum` | `retain_hours`, `lite`, `dry_run` |
//! | `compact`, `optimize`, `rewrite_data_files` | `where` |
//! | `checkpoint` | `dry_run` |
//! | `expire_log`, `expire_snapshots` | `older_than`, `retain_last`, `dry_run` |
//! | `remove_orphan_files` | `older_than`, `dry_run` |
//! | `create_tag` | `tag`, `version`, `timestamp`, `upgrade` |
//! | `delete_tag` | `tag` |
//! | `restore` | `version`, `timestamp`, `ref` |
//! | `rollback_to` | `version`, `timestamp`, `ref`, `dry_run` |
//!
//! What a format registers of its own comes after these.
use std::{sync::Arc, time::Duration};

use lakebed_core::{
    Error, Result,
    maintain::{Maintenance, Retain},
    version::{AsOf, Millis},
};

use super::{Destination, Output, Session, writes::answer};
use crate::{
    error::of_datafusion,
    function::{Arguments, VERSION_ARGUMENTS},
    sql::{
        pins,
        resolve::Loader,
        write::{Call, Target},
    },
    text::did_you_mean,
};

/// Files of no version are left alone this long: a write under way may have made them.
const ORPHANS_OLDER_THAN: Duration = Duration::from_secs(3 * 86_400);

const PROCEDURES: &[(&str, &[&str])] = &[
    ("vacuum", &["retain_hours", "lite", "dry_run"]),
    ("compact", &["where"]),
    ("optimize", &["where"]),
    ("rewrite_data_files", &["where"]),
    ("checkpoint", &["dry_run"]),
    ("expire_log", &["older_than", "retain_last", "dry_run"]),
    ("expire_snapshots", &["older_than", "retain_last", "dry_run"]),
    ("remove_orphan_files", &["older_than", "dry_run"]),
    ("create_tag", &["tag", "version", "timestamp", "upgrade"]),
    ("delete_tag", &["tag"]),
    ("restore", &["version", "timestamp", "ref"]),
    ("rollback_to", &["version", "timestamp", "ref", "dry_run"]),
];

impl Session {
    pub(super) async fn call(&self, call: &Call) -> Result<Output> {
        let name = self.procedure(&call.procedure)?;
        let state = self.statement_state();
        let loader = self.loader(&state);
        match PROCEDURES.iter().find(|it| it.0 == name) {
            Some((name, parameters)) => {
                let positional: Vec<&str> = std::iter::once("table").chain(parameters.iter().copied()).collect();
                let arguments = Arguments::new(name, &call.arguments, &positional, &[], &loader)?;
                let to = self.destination(&Target::parse(arguments.text("table")?)?).await?;
                self.run_procedure(name, &to, &arguments, &loader).await
            }
            None => self.call_format(&name, call, &loader).await,
        }
    }

    async fn run_procedure(
        &self,
        name: &str,
        to: &Destination,
        arguments: &Arguments,
        loader: &Loader<'_>,
    ) -> Result<Output> {
        let dry_run = arguments.flag("dry_run")?;
        if !dry_run {
            self.check_writes(name)?;
        }
        let older_than = |key: &str| arguments.optional(key).map(|it| pins::millis(it, loader)).transpose();
        match name {
            "vacuum" => {
                self.vacuum_table(to, arguments.number("retain_hours")?, arguments.flag("lite")?, dry_run).await
            }
            "compact" | "optimize" | "rewrite_data_files" => {
                let context = self.write_context(to, Arc::new(self.statement_state()))?;
                let filter = arguments.optional_text("where")?.map(crate::sql::parse::expression).transpose()?;
                self.compact(to, &context, filter.as_ref()).await
            }
            "checkpoint" => self.upkeep(to, &Maintenance::Checkpoint, dry_run).await,
            "expire_log" | "expire_snapshots" => {
                let retain = match (older_than("older_than")?, arguments.count("retain_last")?) {
                    (None, None) => self.own_retention(name, to).await?,
                    (newer_than, at_least) => {
                        Retain { newer_than, at_least: at_least.unwrap_or(1), ..Retain::default() }
                    }
                };
                self.upkeep(to, &Maintenance::Expire(retain), dry_run).await
            }
            "remove_orphan_files" => {
                let older_than = older_than("older_than")?.unwrap_or_else(|| self.ago(ORPHANS_OLDER_THAN));
                self.upkeep(to, &Maintenance::RemoveOrphans { older_than }, dry_run).await
            }
            "create_tag" => {
                let version = self.point(to, arguments, loader).await?.unwrap_or(AsOf::Latest);
                self.create_tag(to, arguments.text("tag")?, &version, arguments.flag("upgrade")?).await
            }
            "delete_tag" => self.delete_tag(to, arguments.text("tag")?).await,
            "restore" => {
                let as_of = self.required_point(name, to, arguments, loader).await?;
                let context = self.write_context(to, Arc::new(self.statement_state()))?;
                self.restore_table(to, &context, &as_of).await
            }
            "rollback_to" => {
                let to_version = self.required_point(name, to, arguments, loader).await?;
                self.upkeep(to, &Maintenance::RollBack { to: to_version }, dry_run).await
            }
            _ => Err(Error::internal(format!("procedure `{name}` is listed and not there"))),
        }
    }

    /// What the table itself says of the versions it keeps: without a word of anybody's, none may be forgotten.
    async fn own_retention(&self, name: &str, to: &Destination) -> Result<Retain> {
        let snapshot = to.table.snapshot(&AsOf::Latest).await?;
        snapshot.retention().ok_or_else(|| {
            Error::invalid(format!("{name}(…): neither the call nor the table says which versions stay"))
                .with_hint("older_than => '7 days ago', or retain_last => 10")
        })
    }

    /// The version that the arguments name.
    async fn point(&self, to: &Destination, arguments: &Arguments, loader: &Loader<'_>) -> Result<Option<AsOf>> {
        match arguments.pin(loader)? {
            None => Ok(None),
            Some(pin) => loader.as_of(&to.table, Some(pin)).await.map(Some),
        }
    }

    async fn required_point(
        &self,
        name: &str,
        to: &Destination,
        arguments: &Arguments,
        loader: &Loader<'_>,
    ) -> Result<AsOf> {
        self.point(to, arguments, loader).await?.ok_or_else(|| {
            Error::invalid(format!("{name}(…) needs a version"))
                .with_hint("version => 3, timestamp => '…' or ref => '…'")
        })
    }

    fn ago(&self, age: Duration) -> Millis {
        let age = i64::try_from(age.as_millis()).unwrap_or(i64::MAX);
        Millis(self.shared.env.clock.now().0.saturating_sub(age))
    }

    /// The procedure's own name: `[catalog.][system.]name`.
    fn procedure(&self, parts: &[String]) -> Result<String> {
        let (name, folder) = parts.split_last().ok_or_else(|| Error::internal("a procedure without a name"))?;
        let system = |it: &String| ["system", "sys"].contains(&it.as_str());
        let known = match folder {
            [] => true,
            [only] => system(only),
            [catalog, schema] => system(schema) && self.shared.catalog(catalog).is_ok(),
            _ => false,
        };
        match known {
            true => Ok(name.clone()),
            false => Err(Error::invalid(format!("no procedure is called `{}`", parts.join(".")))
                .with_hint(format!("did you mean `system.{name}`?"))),
        }
    }

    /// A procedure that the table's format registers.
    async fn call_format(&self, name: &str, call: &Call, loader: &Loader<'_>) -> Result<Output> {
        let found = self.shared.formats.iter().find_map(|format| {
            let procedures = format.extensions().procedures;
            procedures.into_iter().find(|it| it.name == name)
        });
        let Some(procedure) = found else { return Err(self.unknown_procedure(name)) };
        self.check_writes(name)?;
        let positional: Vec<&str> =
            std::iter::once("table").chain(procedure.parameters.iter().map(|it| it.name)).collect();
        let arguments = Arguments::new(name, &call.arguments, &positional, &VERSION_ARGUMENTS, loader)?;
        let to = self.destination(&Target::parse(arguments.text("table")?)?).await?;
        let mut given = lakebed_core::extension::Arguments::default();
        for parameter in procedure.parameters {
            match arguments.scalar(parameter.name)? {
                Some(value) => drop(given.values.insert(parameter.name.to_owned(), value)),
                None if parameter.required => drop(arguments.required(parameter.name)?),
                None => (),
            }
        }
        given.as_of = self.point(&to, &arguments, loader).await?;
        let batches = procedure.rows.rows(&to.table, &given).await?;
        let schema = procedure.schema;
        let batch = arrow_select::concat::concat_batches(&schema, &batches).map_err(|it| of_datafusion(it.into()))?;
        answer(batch)
    }

    fn unknown_procedure(&self, name: &str) -> Error {
        let mut known: Vec<String> = PROCEDURES.iter().map(|it| it.0.to_owned()).collect();
        for format in self.shared.formats.iter() {
            known.extend(format.extensions().procedures.iter().map(|it| it.name.to_owned()));
        }
        let error = Error::invalid(format!("no procedure is called `{name}`"));
        match did_you_mean(name, known.iter().map(String::as_str)) {
            Some(near) => error.with_hint(format!("did you mean `{near}`?")),
            None => error.with_hint(format!("there are {}", known.join(", "))),
        }
    }
}
