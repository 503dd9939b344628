//! `files`: the live data files of a version, as they come: a million files are never held.
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{Schema, SchemaRef};
use futures::StreamExt as _;
use lakebed_core::{
    Error,
    listing::{self, ListingColumns},
    scan::Scan,
};

use crate::{
    args::{Format, Named},
    door::Door,
    failure::{Failure, Verdict},
    render::{Envelope, cell::JSON_TEXT},
};

pub(crate) async fn run(door: &Door, args: &Named) -> Result<Verdict, Failure> {
    let opened = door.table(&args.table).await?;
    let (_, snapshot) = door.snapshot(&opened).await?;
    let columns = wanted(door);
    let schema = marked(&listing::schema(columns));
    let renamed = Arc::clone(&schema);
    let rows = snapshot.files(&Scan::all(), columns).map(move |batch| {
        let batch = batch?;
        RecordBatch::try_new(Arc::clone(&renamed), batch.columns().to_vec())
            .map_err(|it| Error::internal(it.to_string()))
    });
    let envelope = Envelope::new("lakebed.files/1", opened.table.storage().location());
    door.rows(&schema, rows, Some(&envelope)).await?;
    Ok(Verdict::Yes)
}

/// Only what is shown is decoded: a table leaves out the bounds, which are long and seldom read.
fn wanted(door: &Door) -> ListingColumns {
    match &door.printer.columns {
        Some(names) => {
            let lower: Vec<String> = names.iter().map(|it| it.to_ascii_lowercase()).collect();
            // A name that is no column gets its error from the printer, which lists all of them.
            ListingColumns::named(lower.iter().map(String::as_str)).unwrap_or(ListingColumns::ALL)
        }
        None if door.printer.format == Format::Table => {
            ListingColumns { min: false, max: false, format: false, ..ListingColumns::ALL }
        }
        None => ListingColumns::ALL,
    }
}

/// The same columns; those that hold JSON say so.
fn marked(schema: &SchemaRef) -> SchemaRef {
    let fields = schema.fields().iter().map(|field| {
        let field = field.as_ref().clone();
        match field.name().as_str() {
            "partition" | "min" | "max" => field.with_metadata([(JSON_TEXT.to_owned(), "true".to_owned())].into()),
            _ => field,
        }
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}
