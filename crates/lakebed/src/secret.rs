//! Secrets and where they come from. A secret is never written in the configuration, only named there.
//!
//! A reference is one of
//!
//! - `none`: requests are not signed (public buckets);
//! - `env:NAME`: the variable holds the document below;
//! - `file:PATH`: so does the file, which only its owner may read;
//! - `command:LINE`: so does the output of the command, run by `sh -c`;
//! - `aws-profile:NAME`: a profile of `~/.aws/credentials` (or `AWS_SHARED_CREDENTIALS_FILE`).
//!
//! The document is `name = "value"` lines in TOML, or one JSON object: names as the stores spell them
//! (`access_key_id`, `secret_access_key`, `session_token`, `account_key`, `sas_key`, `bearer_token`), also as AWS
//! credential processes print them (`AccessKeyId` …). A Google service account's JSON is taken whole.
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::Command,
    str::FromStr,
};

use lakebed_core::{Error, ErrorKind, Result};

/// A text that must not be printed: no `Debug`, no `Display`, no serialisation, and its bytes are cleared on drop.
#[expect(missing_debug_implementations, reason = "a secret has no printable form")]
pub struct Secret(Vec<u8>);

impl Secret {
    pub fn new(text: String) -> Self {
        Self(text.into_bytes())
    }

    /// The text itself. Hand it to the one library call that needs it and to nothing that formats.
    pub fn expose(&self) -> &str {
        std::str::from_utf8(&self.0).expect("made from a string and never changed")
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        self.0.fill(0);
        std::hint::black_box(&self.0);
    }
}

/// Names the place of a secret; safe to print.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretRef {
    None,
    Environment(String),
    File(PathBuf),
    Command(String),
    AwsProfile(String),
}

impl FromStr for SecretRef {
    type Err = Error;

    /// # Errors
    /// [`ErrorKind::Invalid`] for anything but the forms above; the text is not repeated, it may be a secret.
    fn from_str(text: &str) -> Result<Self> {
        match text.split_once(':') {
            None if text == "none" => Ok(Self::None),
            Some(("env", name)) if !name.is_empty() => Ok(Self::Environment(name.to_owned())),
            Some(("file", path)) if !path.is_empty() => Ok(Self::File(PathBuf::from(path))),
            Some(("command", line)) if !line.is_empty() => Ok(Self::Command(line.to_owned())),
            Some(("aws-profile", name)) if !name.is_empty() => Ok(Self::AwsProfile(name.to_owned())),
            _ => Err(Error::invalid("credentials are given by reference, not by value")
                .with_hint("write none, env:NAME, file:PATH, command:LINE or aws-profile:NAME")),
        }
    }
}

/// Named secrets of one store.
pub(crate) type Credentials = Vec<(String, Secret)>;

impl SecretRef {
    /// Fetches what the reference names.
    ///
    /// # Errors
    /// [`ErrorKind::Unauthorized`] when it is not there or not to be trusted; no message holds any of it.
    pub(crate) fn fetch(&self, environment: &BTreeMap<String, String>) -> Result<Credentials> {
        match self {
            Self::None => Ok(Vec::new()),
            Self::Environment(name) => {
                let found = environment.get(name).ok_or_else(|| denied(format!("variable {name} is not set")))?;
                document(found, &format!("variable {name}"))
            }
            Self::File(path) => document(&private_file(path)?, &path.display().to_string()),
            Self::Command(line) => document(&output_of(line)?, "the credential command's output"),
            Self::AwsProfile(name) => aws_profile(name, environment),
        }
    }
}

fn denied(message: String) -> Error {
    Error::new(ErrorKind::Unauthorized, format!("no credentials: {message}"))
}

fn private_file(path: &Path) -> Result<String> {
    let text = std::fs::read_to_string(path).map_err(|it| denied(format!("{}: {it}", path.display())))?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(path).map_err(|it| denied(format!("{}: {it}", path.display())))?.permissions();
        if mode.mode() & 0o077 != 0 {
            return Err(denied(format!("others may read {}", path.display()))
                .with_hint(format!("chmod 600 {}", path.display())));
        }
    }
    Ok(text)
}

fn output_of(line: &str) -> Result<String> {
    let run = Command::new("sh").arg("-c").arg(line).output();
    let run = run.map_err(|it| denied(format!("the credential command did not start: {it}")))?;
    if !run.status.success() {
        return Err(denied(format!("the credential command ended with {}", run.status)));
    }
    String::from_utf8(run.stdout).map_err(|_| denied("the credential command did not print text".to_owned()))
}

/// Reads a document; `place` names it in errors, which never quote it.
fn document(text: &str, place: &str) -> Result<Credentials> {
    let broken = || denied(format!("{place} is neither a TOML nor a JSON document of credentials"));
    let values: BTreeMap<String, String> = if text.trim_start().starts_with('{') {
        let object: serde_json::Map<String, serde_json::Value> = serde_json::from_str(text).map_err(|_| broken())?;
        if object.contains_key("private_key") && object.contains_key("client_email") {
            return Ok(vec![("service_account_key".to_owned(), Secret::new(text.to_owned()))]);
        }
        let texts = object.into_iter().filter_map(|(name, value)| Some((name, value.as_str()?.to_owned())));
        texts.collect()
    } else {
        toml::from_str(text).map_err(|_| broken())?
    };
    let named = values.into_iter().map(|(name, value)| (canonical_name(&name), Secret::new(value)));
    Ok(named.filter(|(name, _)| !matches!(name.as_str(), "expiration" | "version")).collect())
}

/// `AccessKeyId` and `aws_access_key_id` → `access_key_id`.
fn canonical_name(name: &str) -> String {
    let mut out = String::new();
    for (at, letter) in name.char_indices() {
        if letter.is_ascii_uppercase() && at > 0 {
            out.push('_');
        }
        out.push(letter.to_ascii_lowercase());
    }
    out.strip_prefix("aws_").map_or(out.clone(), str::to_owned)
}

fn aws_profile(name: &str, environment: &BTreeMap<String, String>) -> Result<Credentials> {
    let path = match (environment.get("AWS_SHARED_CREDENTIALS_FILE"), environment.get("HOME")) {
        (Some(file), _) => PathBuf::from(file),
        (None, Some(home)) => Path::new(home).join(".aws/credentials"),
        (None, None) => return Err(denied("HOME is not set, so there is no ~/.aws/credentials".to_owned())),
    };
    let text = std::fs::read_to_string(&path).map_err(|it| denied(format!("{}: {it}", path.display())))?;
    let mut inside = false;
    let mut found = Vec::new();
    for line in text.lines().map(str::trim) {
        if let Some(section) = line.strip_prefix('[').and_then(|it| it.strip_suffix(']')) {
            inside = section.trim() == name;
        } else if let Some((key, value)) = line.split_once('=').filter(|_| inside && !line.starts_with('#')) {
            found.push((canonical_name(key.trim()), Secret::new(value.trim().to_owned())));
        }
    }
    if found.is_empty() {
        return Err(denied(format!("{} has no profile `{name}`", path.display())));
    }
    let secret = ["access_key_id", "secret_access_key", "session_token"];
    found.retain(|(name, _)| secret.contains(&name.as_str()));
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(found: Result<Credentials>) -> String {
        match found {
            Ok(pairs) => pairs.iter().map(|(name, it)| format!("{name}={}", it.expose())).collect::<Vec<_>>().join(" "),
            Err(err) => format!("{err}"),
        }
    }

    #[test]
    fn references_are_read_and_values_refused() {
        for good in ["none", "env:KEY", "file:/k", "command:pass show k", "aws-profile:prod"] {
            assert!(SecretRef::from_str(good).is_ok(), "{good}");
        }
        for bad in ["AKIA123", "env:", "key:secret", "", "keyring:x"] {
            let err = SecretRef::from_str(bad).unwrap_err();
            assert_eq!(err.to_string(), "credentials are given by reference, not by value");
            assert!(bad.is_empty() || !err.to_string().contains(bad));
        }
    }

    #[test]
    fn documents_are_toml_json_or_a_service_account() {
        let toml = document("access_key_id = 'a'\nsecret_access_key = 'b'", "x");
        assert_eq!(shown(toml), "access_key_id=a secret_access_key=b");
        let process = document(r#"{"Version":1,"AccessKeyId":"a","SecretAccessKey":"b","Expiration":"never"}"#, "x");
        assert_eq!(shown(process), "access_key_id=a secret_access_key=b");
        let account = document(r#"{"private_key":"k","client_email":"e"}"#, "x");
        assert_eq!(shown(account), r#"service_account_key={"private_key":"k","client_email":"e"}"#);
        let broken = document("canary-secret", "variable K");
        assert_eq!(shown(broken), "no credentials: variable K is neither a TOML nor a JSON document of credentials");
    }

    #[test]
    fn a_file_others_may_read_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        std::fs::write(&path, "account_key = 'canary'").unwrap();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
            let err = SecretRef::File(path.clone()).fetch(&BTreeMap::new()).err().unwrap();
            assert!(err.to_string().starts_with("no credentials: others may read"), "{err}");
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        }
        assert_eq!(shown(SecretRef::File(path).fetch(&BTreeMap::new())), "account_key=canary");
    }

    #[test]
    fn an_aws_profile_is_found_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("credentials");
        std::fs::write(&path, "[default]\naws_access_key_id = d\n[prod]\naws_access_key_id = p\nregion = x\n").unwrap();
        let environment = BTreeMap::from([("AWS_SHARED_CREDENTIALS_FILE".to_owned(), path.display().to_string())]);
        assert_eq!(shown(SecretRef::AwsProfile("prod".to_owned()).fetch(&environment)), "access_key_id=p");
        let missing = SecretRef::AwsProfile("dev".to_owned()).fetch(&environment);
        assert_eq!(shown(missing), format!("no credentials: {} has no profile `dev`", path.display()));
    }
}
