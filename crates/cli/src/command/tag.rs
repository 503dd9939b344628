//! `tag`: names that keep versions.
use lakebed::change::{NewTag, Upgrade};
use lakebed_core::version::RefKind;

use super::refs;
use crate::{
    args::writing::{Tag, TagAction, TagCreate},
    door::Door,
    failure::{Failure, Verdict},
    report::{Kind, Record},
};

pub(crate) async fn run(door: &Door, args: &Tag) -> Result<Verdict, Failure> {
    match &args.action {
        TagAction::Create(args) => create(door, args).await,
        TagAction::List { table } => {
            let opened = door.bare_table(table).await?;
            refs::list(door, &opened, |it| it.kind == RefKind::Tag).await
        }
        TagAction::Delete { name, table } => delete(door, name, table).await,
    }
}

async fn create(door: &Door, args: &TagCreate) -> Result<Verdict, Failure> {
    let opened = door.table(&args.table).await?;
    let changer = door.lake.changer(&opened)?;
    let expires_at = args.expires.as_deref().map(|it| door.future("--expires", it)).transpose()?;
    let version = door.version(&opened).await?.version.id;
    let upgrade = if args.upgrade { Upgrade::Agreed } else { Upgrade::Refused };
    let tag = NewTag { name: args.name.clone(), version, expires_at, upgrade };
    let changed = changer.create_tag(&tag).await?;
    for note in &changed.notes {
        door.note(&format!("note: {note}"));
    }
    let mut record = Record::new("lakebed.tag/1", opened.table.storage().location());
    record.put("name", Kind::Text, tag.name);
    record.put("version", Kind::Text, tag.version.as_str());
    record.put("expires_at", Kind::Time, tag.expires_at);
    record.put("committed_in", Kind::Text, changed.committed.version.id.as_str());
    door.record(record)?;
    Ok(Verdict::Yes)
}

async fn delete(door: &Door, name: &str, table: &str) -> Result<Verdict, Failure> {
    let opened = door.bare_table(table).await?;
    let (changed, version) = door.lake.changer(&opened)?.drop_tag(name).await?;
    let mut record = Record::new("lakebed.tag/1", opened.table.storage().location());
    record.put("name", Kind::Text, name);
    record.put("version", Kind::Text, version.as_str());
    record.put("committed_in", Kind::Text, changed.committed.version.id.as_str());
    door.record(record)?;
    Ok(Verdict::Yes)
}
