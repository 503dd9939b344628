//! Putting and dropping tags: the table's domain [`DOMAIN`](refs::DOMAIN), written anew.
//!
//! Whatever else the domain's text holds stays as it is: a later Lakebed may keep more there.
//! Spec: Delta PROTOCOL.md, "Domain Metadata".
use lakebed_core::{
    Error, ErrorKind, Result,
    change::Change,
    rev::check_ref_name,
    version::{Millis, Ref, RefKind},
};
use serde_json::{Map, Value, json};

use crate::{
    spec::{DomainMetadata, Protocol},
    state::{Head, State},
    timeline::{number, refs},
};

/// The action that puts and drops the tags among `changes`, on the table as it is in `onto`; `None` without any.
/// `protocol` is the one the commit leaves behind. A tag without a time of its own is made `now`.
///
/// # Errors
/// Unsupported if the table may not have domains, and for branches; already exists; not found for a tag to drop, and for a
/// version that cannot be read; invalid for a name that means something else.
pub(crate) async fn action(
    head: &Head,
    onto: &State,
    protocol: &Protocol,
    changes: &[Change],
    now: Millis,
) -> Result<Option<DomainMetadata>> {
    if !changes.iter().any(|it| matches!(it, Change::PutRef(_) | Change::DropRef(_))) {
        return Ok(None);
    }
    if !protocol.supports("domainMetadata") {
        return Err(Error::unsupported(
            "tags are kept in a metadata domain, and the table lacks feature `domainMetadata`",
        )
        .with_hint("`tag create --upgrade` adds it; engines that do not know it can then no longer write"));
    }
    let text = onto.domains().await?.remove(refs::DOMAIN).map_or_else(|| "{}".to_owned(), |it| it.configuration);
    // Says what is wrong with a text that holds no tags.
    refs::parse(&text)?;
    let mut domain: Map<String, Value> = serde_json::from_str(&text).unwrap_or_default();
    let mut tags = match domain.remove("tags") {
        Some(Value::Object(tags)) => tags,
        _ => Map::new(),
    };
    for change in changes {
        match change {
            Change::PutRef(put) => {
                let tag = made(head, onto, put, now).await?;
                if tags.contains_key(&put.name) {
                    let message = format!("the table has a tag `{}`", put.name);
                    return Err(
                        Error::new(ErrorKind::AlreadyExists, message).with_hint("drop it first: a tag never moves")
                    );
                }
                tags.insert(put.name.clone(), tag);
            }
            Change::DropRef(name) if tags.remove(name).is_none() => {
                let message = format!("the table has no tag `{}`", name.escape_debug());
                return Err(Error::not_found(message).with_hint("list tags with `lakebed refs`"));
            }
            _ => (),
        }
    }
    domain.insert("tags".to_owned(), Value::Object(tags));
    let configuration = Value::Object(domain).to_string();
    Ok(Some(DomainMetadata { domain: refs::DOMAIN.to_owned(), configuration, removed: false }))
}

async fn made(head: &Head, onto: &State, put: &Ref, now: Millis) -> Result<Value> {
    if put.kind != RefKind::Tag {
        return Err(Error::unsupported("a Delta table has no branches"));
    }
    check_ref_name(&put.name)?;
    let version = number(&put.version)?;
    // Opening it is what a reader of the tag will do.
    if version != onto.version {
        head.at(version).await?.files().await?;
    }
    let mut tag = json!({ "version": version, "createdAt": put.created_at.unwrap_or(now).0 });
    if let Some(expires_at) = put.expires_at {
        tag["expiresAt"] = expires_at.0.into();
    }
    Ok(tag)
}
