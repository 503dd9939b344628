//! Ids of mapped columns: given once, counted in the table's properties, never given again.
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use arrow_schema::{DataType, Field, FieldRef, Fields};
use lakebed_core::{
    Result,
    env::Env,
    scan::{FIELD_ID, PHYSICAL_NAME},
};
use uuid::Uuid;

use super::{MAX_ID, MODE, inside, without_marks};
use crate::{
    error::DeltaError,
    properties::Properties,
    schema::{TableSchema, text},
    write::draft::Draft,
};

/// The ids of a mapped table.
#[derive(Debug)]
pub(super) struct Numbers<'a> {
    env: &'a Env,
    /// The highest ever given in the table.
    counted: i64,
    /// The highest given so far.
    pub(super) last: i64,
    used: BTreeSet<i64>,
}

impl<'a> Numbers<'a> {
    /// Of a table that is to be, in a place where ids up to `highest` were given.
    pub(super) fn above(env: &'a Env, highest: i64) -> Self {
        Self { env, counted: highest, last: highest, used: BTreeSet::new() }
    }

    pub(super) fn of(
        env: &'a Env,
        fields: &Fields,
        configuration: &BTreeMap<String, String>,
    ) -> Result<Self, DeltaError> {
        let mut used = BTreeSet::new();
        collect_ids(fields, &mut used);
        let counted = Properties(configuration).count(MAX_ID)?.unwrap_or(0);
        let counted = used.last().copied().unwrap_or(0).max(counted);
        Ok(Self { env, counted, last: counted, used })
    }

    /// The field with its marks if they are of an id that was never given, else with fresh ones: those of a column that went
    /// would bring its values back.
    pub(super) fn give(&mut self, field: &Field) -> Field {
        let id = id_of(field).filter(|it| *it > self.counted && !self.used.contains(it));
        let kept = id.zip(field.metadata().get(PHYSICAL_NAME).cloned());
        let (id, physical) =
            kept.unwrap_or_else(|| (self.last + 1, format!("col-{}", Uuid::from_u128(self.env.ids.uuid()))));
        self.last = self.last.max(id);
        self.used.insert(id);
        mark(without_marks(field), id, &physical)
    }
}

fn id_of(field: &Field) -> Option<i64> {
    field.metadata().get(FIELD_ID)?.parse().ok()
}

fn collect_ids(fields: &Fields, used: &mut BTreeSet<i64>) {
    for field in fields {
        used.extend(id_of(field));
        match field.data_type() {
            DataType::Struct(inner) => collect_ids(inner, used),
            DataType::List(inner) | DataType::Map(inner, _) => collect_ids(&vec![Arc::clone(inner)].into(), used),
            _ => (),
        }
    }
}

/// Gives the columns that are there ids, and their own names as physical ones.
pub(crate) fn turn_on_mapping(draft: &mut Draft<'_>) -> Result<()> {
    let mut unmapped = draft.metadata.clone();
    unmapped.configuration.remove(MODE);
    let old = TableSchema::of(&draft.protocol, &unmapped)?;
    let mut last = 0;
    let fields: Fields = old.arrow.fields().iter().map(|it| numbered(it, &mut last)).collect();
    draft.metadata.configuration.insert(MAX_ID.to_owned(), last.to_string());
    draft.metadata.schema_string = text::to_text(&fields, Some(&draft.metadata.schema_string))?;
    Ok(())
}

fn numbered(field: &FieldRef, last: &mut i64) -> FieldRef {
    *last += 1;
    let marked = mark(without_marks(field), *last, field.name());
    Arc::new(inside(marked, &mut |it| Ok(numbered(it, last))).expect("numbering does not fail"))
}

fn mark(field: Field, id: i64, physical: &str) -> Field {
    let mut metadata = field.metadata().clone();
    metadata.insert(FIELD_ID.to_owned(), id.to_string());
    metadata.insert(PHYSICAL_NAME.to_owned(), physical.to_owned());
    field.with_metadata(metadata)
}
