//! Tags. Delta has none of its own: Lakebed keeps them in the table's metadata domain [`DOMAIN`].
//!
//! The domain's text is `{"tags":{"<name>":{"version":3,"createdAt":1700000000000,"expiresAt":null}}}`, times in
//! milliseconds. Other writers keep the domain as it is; whether they keep the versions is theirs to decide.
//! Spec: Delta PROTOCOL.md, "Domain Metadata".
use std::collections::BTreeMap;

use lakebed_core::{
    Result,
    change::Claim,
    table::RefRules,
    version::{Millis, Ref, RefKind},
};
use serde::Deserialize;

use crate::{error::DeltaError, spec::Protocol, state::State};

/// The domain that holds a table's tags.
pub(crate) const DOMAIN: &str = "lakebed.refs";

/// The feature of a table that may hold such a domain.
const FEATURE: &str = "domainMetadata";

/// What the first tag asks of a table.
pub(crate) fn rules(protocol: &Protocol) -> RefRules {
    let missing = if protocol.supports(FEATURE) { Vec::new() } else { vec![FEATURE.to_owned()] };
    let cost = "engines that do not know the table feature `domainMetadata` can no longer write to the table: Delta \
                before 3.0 is one of them. Reading stays as it is";
    let caution = "tags keep versions from Lakebed alone: VACUUM and log clean-up of other engines do not know them";
    RefRules {
        missing,
        upgrade_costs: Some(cost.to_owned()),
        caution: Some(caution.to_owned()),
        claim: Some(Claim::Named(format!("domain {DOMAIN}"))),
    }
}

#[derive(Debug, Default, Deserialize)]
struct Stored {
    #[serde(default)]
    tags: BTreeMap<String, StoredTag>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct StoredTag {
    version: u64,
    #[serde(default)]
    created_at: Option<i64>,
    #[serde(default)]
    expires_at: Option<i64>,
}

/// The table's tags, by name.
///
/// # Errors
/// Corrupt if the domain's text is not what is written above: a tag that cannot be read keeps its version from being
/// seen as unneeded.
pub(crate) async fn refs(state: &State) -> Result<Vec<Ref>> {
    match state.domains().await?.get(DOMAIN) {
        Some(domain) => Ok(parse(&domain.configuration)?),
        None => Ok(Vec::new()),
    }
}

pub(crate) fn parse(text: &str) -> Result<Vec<Ref>, DeltaError> {
    let stored: Stored = serde_json::from_str(text)
        .map_err(|err| DeltaError::Domain { domain: DOMAIN.to_owned(), reason: err.to_string() })?;
    let tags = stored.tags.into_iter().map(|(name, tag)| Ref {
        name,
        kind: RefKind::Tag,
        version: tag.version.into(),
        created_at: tag.created_at.map(Millis),
        expires_at: tag.expires_at.map(Millis),
    });
    Ok(tags.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_read_by_name() {
        let text = r#"{"tags":{"b":{"version":3,"createdAt":7},"a":{"version":0,"expiresAt":9,"later":1}},"more":{}}"#;
        let shown: Vec<String> = parse(text)
            .unwrap()
            .iter()
            .map(|it| format!("{}={} {:?} {:?}", it.name, it.version, it.created_at, it.expires_at))
            .collect();
        assert_eq!(shown, ["a=0 None Some(Millis(9))", "b=3 Some(Millis(7)) None"]);
        assert!(parse("{}").unwrap().is_empty());
    }

    #[test]
    fn a_damaged_domain_is_an_error_not_an_empty_list() {
        for text in ["", "[", r#"{"tags":{"a":{}}}"#, r#"{"tags":{"a":{"version":-1}}}"#] {
            let err = parse(text).unwrap_err().to_string();
            assert!(err.contains("lakebed.refs"), "{err}");
        }
    }
}
