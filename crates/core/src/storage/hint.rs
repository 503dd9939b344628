//! The objects that may be overwritten, by name. Everything else is written once.

/// Whether `path` names a hint, a heartbeat, a lock, a consumer's position or a properties file with its own protocol.
pub fn may_be_overwritten(path: &str) -> bool {
    let mut names = path.rsplit('/');
    let name = names.next().unwrap_or_default();
    let folder = names.next().unwrap_or_default();
    match name {
        "_last_checkpoint" | "LATEST" | "EARLIEST" | "version-hint.text" | "_version_" => true,
        "hoodie.properties" | "hoodie.properties.backup" => folder == ".hoodie",
        _ => match folder {
            "lock" | "locks" | ".locks" | ".heartbeat" => true,
            "consumer" => name.starts_with("consumer-"),
            _ => false,
        },
    }
}
