//! `info`: what a table is, as far as its metadata tell. Works on tables whose rows this build cannot read.
use lakebed_core::table::{Layout, Snapshot};
use serde_json::{Map, Value as Json, json};

use super::schema::type_name;
use crate::{
    args::Named,
    door::Door,
    failure::{Failure, Verdict},
    report::{Kind, Record, Value},
};

pub(crate) async fn run(door: &Door, args: &Named) -> Result<Verdict, Failure> {
    let opened = door.table(&args.table).await?;
    let (resolved, snapshot) = door.snapshot(&opened).await?;
    let mut record = Record::new("lakebed.info/1", opened.table.storage().location());
    record.put("format", Kind::Text, opened.table.format().name());
    record.put("location", Kind::Text, opened.table.storage().location());
    record.put("version", Kind::Text, resolved.version.id.as_str());
    record.put("committed_at", Kind::Time, resolved.version.committed_at);
    match snapshot.totals().await {
        Ok(totals) => {
            record.put("files", Kind::Int, totals.files);
            record.put("bytes", Kind::Int, totals.bytes);
            record.put("rows", Kind::Int, totals.rows);
            record.put("deleted_rows", Kind::Int, totals.deleted_rows);
        }
        Err(err) => door.warn(&format!("sizes cannot be read: {err}")),
    }
    record.put("columns", Kind::Json, Value::Json(columns(snapshot.as_ref())));
    put_layout(&mut record, snapshot.layout());
    record.put("facts", Kind::Json, Value::Json(Json::Object(snapshot.facts().into_iter().collect::<Map<_, _>>())));
    record.put("properties", Kind::Json, Value::Json(json!(snapshot.properties())));
    door.record(record)?;
    Ok(Verdict::Yes)
}

fn columns(snapshot: &dyn Snapshot) -> Json {
    let fields = snapshot.schema().fields().iter();
    Json::Object(fields.map(|it| (it.name().clone(), Json::from(type_name(it.data_type())))).collect())
}

fn put_layout(record: &mut Record, layout: &Layout) {
    let names = |paths: &[lakebed_core::expr::ColumnPath]| paths.iter().map(ToString::to_string).collect::<Vec<_>>();
    let partition: Vec<String> = layout.partition.iter().map(|it| it.name.clone()).collect();
    for (name, list) in [("partition", partition), ("key", names(&layout.key)), ("sort", names(&layout.sort))] {
        if !list.is_empty() {
            record.put(name, Kind::Texts, Value::Texts(list));
        }
    }
    if let Some(bucket) = &layout.bucket {
        record.put("buckets", Kind::Int, u64::from(bucket.count));
    }
}
