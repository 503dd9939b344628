//! Reading `_last_checkpoint`.
//!
//! Only where the listing starts, and how many files the checkpoint should hold, is taken from any hint. The checkpoint
//! that a hint repeats is believed if the hint's checksum verifies: the MD5 of its canonical form, in which every
//! leaf is a line `path=value`, sorted by path.
//! Spec: Delta PROTOCOL.md, "JSON checksum".
use std::fmt::Write;

use lakebed_core::Result;
use md5::{Digest, Md5};
use serde_json::Value;

use super::Log;
use crate::{layout, spec::LastCheckpoint};

/// What the hint says; `None` when there is none or it says nothing sensible, which `warnings` then tells.
///
/// # Errors
/// Only when the store does not answer: a hint can be wrong in every way and harms nothing.
pub(crate) async fn read(log: &Log, warnings: &mut Vec<String>) -> Result<Option<LastCheckpoint>> {
    let Some(body) = log.read_cache(layout::LAST_CHECKPOINT, warnings).await? else { return Ok(None) };
    let mut hint: LastCheckpoint = match serde_json::from_slice(&body) {
        Ok(hint) => hint,
        Err(err) => {
            warnings.push(format!("{} is damaged ({err}): ignored", layout::LAST_CHECKPOINT));
            return Ok(None);
        }
    };
    let verified = hint.checksum.as_ref().map(|it| checksum(&body).is_some_and(|own| own.eq_ignore_ascii_case(it)));
    if verified != Some(true) {
        hint.v2_checkpoint = None;
    }
    if verified == Some(false) {
        hint.num_of_add_files = None;
        let wrong = "its checksum is wrong: only the version it names is used";
        warnings.push(format!("{}: {wrong}", layout::LAST_CHECKPOINT));
    }
    Ok(Some(hint))
}

/// The checksum that a hint of these bytes should name, in hexadecimal.
pub(crate) fn checksum(body: &[u8]) -> Option<String> {
    let mut digits = String::with_capacity(32);
    for byte in Md5::digest(canonical(body)?.as_bytes()) {
        write!(digits, "{byte:02x}").ok()?;
    }
    Some(digits)
}

fn canonical(body: &[u8]) -> Option<String> {
    let Ok(Value::Object(mut fields)) = serde_json::from_slice(body) else { return None };
    fields.remove("checksum");
    let mut leaves = Vec::new();
    collect(&Value::Object(fields), String::new(), &mut leaves);
    leaves.sort();
    Some(leaves.into_iter().map(|(path, value)| format!("{path}={value}")).collect::<Vec<_>>().join(","))
}

/// The leaves below `value` with their paths. Nesting is as shallow as the JSON parser admits.
fn collect(value: &Value, path: String, leaves: &mut Vec<(String, String)>) {
    let below = |name: String| if path.is_empty() { name } else { format!("{path}+{name}") };
    match value {
        Value::Object(fields) => fields.iter().for_each(|(name, it)| collect(it, below(quoted(name)), leaves)),
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(at, it)| collect(it, below(at.to_string()), leaves));
        }
        Value::String(text) => leaves.push((path, quoted(text))),
        Value::Null | Value::Bool(_) | Value::Number(_) => leaves.push((path, value.to_string())),
    }
}

fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(char::from(byte)),
            // Writing to a string cannot fail.
            _ => drop(write!(out, "%{byte:02X}")),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_canonical_form_is_that_of_the_specification() {
        let json = r#"{"k0":"'v 0'", "checksum": "adsaskfljadfkjadfkj", "k1":{"k2": 2, "k3": ["v3", [1, 2], {"k4": "v4", "k5": ["v5", "v6", "v7"]}]}}"#;
        let form = r#""k0"="%27v%200%27","k1"+"k2"=2,"k1"+"k3"+0="v3","k1"+"k3"+1+0=1,"k1"+"k3"+1+1=2,"k1"+"k3"+2+"k4"="v4","k1"+"k3"+2+"k5"+0="v5","k1"+"k3"+2+"k5"+1="v6","k1"+"k3"+2+"k5"+2="v7""#;
        assert_eq!(canonical(json.as_bytes()).as_deref(), Some(form));
        assert_eq!(checksum(json.as_bytes()).as_deref(), Some("6a92d155a59bf2eecbd4b4ec7fd1f875"));
        assert_eq!(checksum(b"[]"), None);
    }

    #[test]
    fn hints_that_other_engines_wrote_verify() {
        let mut verified = 0;
        for case in lakebed_testkit::corpus::cases("delta") {
            let Ok(body) = std::fs::read(case.table().join(layout::LAST_CHECKPOINT)) else { continue };
            // Some cases are about hints that are no JSON.
            let Ok(hint) = serde_json::from_slice::<LastCheckpoint>(&body) else { continue };
            let Some(said) = hint.checksum else { continue };
            assert_eq!(checksum(&body), Some(said), "{}", case.table().display());
            verified += 1;
        }
        assert!(verified > 0 || lakebed_testkit::corpus::cases("delta").is_empty());
    }
}
