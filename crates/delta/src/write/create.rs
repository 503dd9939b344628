//! A table where none is.
//!
//! 1. One listing shows that there is no log. Two writers who both see that race for version 0, and one of them wins.
//! 2. The table's metadata are made: an id, the schema with marks where columns are mapped, properties.
//! 3. The protocol is the lowest that properties, types and the features named have need of.
//! 4. The write stands on the state before the first version; whatever is committed with it is version 0.
use std::{collections::BTreeSet, sync::Arc};

use arrow_schema::Fields;
use lakebed_core::{
    Error, ErrorKind, Result,
    commit::{Intent, Write},
    conflict::{ConflictPolicy, Isolation},
    format::{CreateTable, Creation, TableFormat, TableLocation},
    table::{Layout, Transform},
    timeline::Action,
};
use serde_json::json;
use uuid::Uuid;

use super::{evolve, rules, settings, upgrade};
use crate::{
    Delta,
    log::Log,
    protocol,
    schema::{TableSchema, text},
    snapshot::DeltaSnapshot,
    spec::{Metadata, Protocol},
    state::State,
    table::DeltaTable,
};

const MAX_ID: &str = "delta.columnMapping.maxColumnId";

/// Begins a table.
pub(crate) async fn begin(at: TableLocation, create: CreateTable, mut intent: Intent) -> Result<Creation> {
    if let Some(branch) = &intent.branch {
        return Err(super::no_branches(branch));
    }
    let (protocol, metadata) = described(&at, &create, 0)?;
    rules::check(&protocol, &metadata, &TableSchema::of(&protocol, &metadata)?)?;
    if Delta.detect(&at.storage).await? {
        return Err(exists(at.storage.location()));
    }
    let state = State::before_first(&Log::new(at.storage.clone()), protocol, metadata);
    let base = Arc::new(DeltaSnapshot::new(Arc::new(state))?);
    fill_parameters(&mut intent, &base.state.metadata);
    let id = super::write_id(&at.env);
    let table = Arc::new(DeltaTable::to_be(at, id.clone()));
    Ok(Creation { table, write: Write { base, intent, id } })
}

/// Makes a table without rows.
pub(crate) async fn create(at: TableLocation, create: CreateTable) -> Result<Arc<dyn lakebed_core::table::Table>> {
    let intent = Intent {
        action: Action::Create,
        operation: "CREATE TABLE".to_owned(),
        parameters: Default::default(),
        metrics: Default::default(),
        branch: None,
        application: None,
        lineage: None,
        user_metadata: None,
    };
    let (publisher, env) = (Arc::clone(&at.publisher), at.env.clone());
    let Creation { table, write } = begin(at, create, intent).await?;
    let policy = ConflictPolicy { isolation: Isolation::Serializable, read: None, claims: Vec::new(), retries: 10 };
    lakebed_core::commit::commit(table.as_ref(), publisher.as_ref(), &env, &write, &[], &policy).await?;
    Ok(table)
}

pub(crate) fn exists(location: &str) -> Error {
    Error::new(ErrorKind::AlreadyExists, format!("there is a Delta table at {location}"))
}

/// The table that `create` describes; its columns get ids above `highest`, where they have any.
pub(super) fn described(at: &TableLocation, create: &CreateTable, highest: i64) -> Result<(Protocol, Metadata)> {
    let mut configuration = settings::of_new(&create.properties)?;
    let mapped = configuration.get(settings::MODE).is_some_and(|it| it != "none");
    evolve::check_names(create.schema.fields(), mapped)?;
    let (fields, last_id) = evolve::of_new(&at.env, create.schema.fields(), mapped, highest)?;
    if let Some(last_id) = last_id {
        configuration.insert(MAX_ID.to_owned(), last_id.to_string());
    }
    let protocol = protocol_of(create, &configuration, &fields)?;
    let metadata = Metadata {
        id: Uuid::from_u128(at.env.ids.uuid()).to_string(),
        name: None,
        description: create.comment.clone(),
        format: Default::default(),
        schema_string: text::to_text(&fields, None)?,
        partition_columns: partition_columns(&create.layout, &fields)?,
        configuration,
        created_time: Some(at.env.clock.now().0),
    };
    Ok((protocol, metadata))
}

fn protocol_of(
    create: &CreateTable,
    configuration: &std::collections::BTreeMap<String, String>,
    fields: &Fields,
) -> Result<Protocol> {
    let named = upgrade::named(&create.properties.iter().cloned().collect())?;
    let types = evolve::features(fields);
    let needed: BTreeSet<String> =
        protocol::turned_on(configuration).into_iter().chain(types).map(str::to_owned).chain(named).collect();
    needed.iter().try_for_each(|it| upgrade::check_known(it))?;
    let (reader, writer) = settings::versions(&create.properties)?;
    Ok(Protocol::lowest(&needed).at_least(reader, writer))
}

/// The columns that partition the table, in the schema's case.
fn partition_columns(layout: &Layout, fields: &Fields) -> Result<Vec<String>> {
    let Layout { partition, key, sort, bucket } = layout;
    if !key.is_empty() || !sort.is_empty() || bucket.is_some() {
        return Err(Error::unsupported("a Delta table has partitions, but neither key, sort order nor buckets"));
    }
    let mut columns = Vec::new();
    for field in partition {
        let (Transform::Identity, [name]) = (&field.transform, &field.source.0[..]) else {
            return Err(Error::unsupported(format!(
                "`{}`: a Delta table is partitioned by columns as they are",
                field.name
            )));
        };
        let found = fields.iter().find(|it| it.name() == name);
        let found = found.or_else(|| fields.iter().find(|it| it.name().eq_ignore_ascii_case(name)));
        let column =
            found.ok_or_else(|| Error::invalid(format!("the table has no column `{name}` to be partitioned by")))?;
        if column.data_type().is_nested() || columns.contains(column.name()) {
            return Err(Error::invalid(format!("column `{name}` cannot partition the table, or does so already")));
        }
        columns.push(column.name().clone());
    }
    if columns.len() == fields.len() && !columns.is_empty() {
        return Err(Error::invalid("a table is not partitioned by all of its columns: no file would hold anything"));
    }
    Ok(columns)
}

/// What history shows of a table's beginning, where the caller did not say it.
pub(super) fn fill_parameters(intent: &mut Intent, metadata: &Metadata) {
    let texts = [
        ("description", metadata.description.as_ref().map(|it| json!(it).to_string())),
        ("isManaged", Some("false".to_owned())),
        ("partitionBy", Some(json!(metadata.partition_columns).to_string())),
        ("properties", Some(json!(metadata.configuration).to_string())),
    ];
    for (name, text) in texts {
        if let Some(text) = text {
            intent.parameters.entry(name.to_owned()).or_insert(text);
        }
    }
}
