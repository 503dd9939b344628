//! Who may depend on whom.
use super::{Complaint, Source};

/// A crate, the crates of ours it may use, and words that no dependency of it may begin with.
struct Floor {
    name: &'static str,
    ours: &'static [&'static str],
    never: &'static [&'static str],
}

/// DataFusion and its SQL parser: with the rows, not below.
const ROWS: &[&str] = &["datafusion", "sqlparser", "ballista"];
const WORDS_ONLY: &[&str] = &["datafusion", "sqlparser", "ballista", "parquet", "apache-avro", "arrow-avro", "reqwest"];
const NO_NETWORK: &[&str] = &["datafusion", "sqlparser", "ballista", "reqwest"];
const FORMAT: &[&str] = &["core", "codec"];

const FLOORS: [Floor; 15] = [
    Floor { name: "core", ours: &[], never: WORDS_ONLY },
    Floor { name: "codec", ours: &["core"], never: NO_NETWORK },
    Floor { name: "delta", ours: FORMAT, never: NO_NETWORK },
    Floor { name: "iceberg", ours: FORMAT, never: NO_NETWORK },
    Floor { name: "hudi", ours: FORMAT, never: NO_NETWORK },
    Floor { name: "paimon", ours: FORMAT, never: NO_NETWORK },
    Floor { name: "testkit", ours: FORMAT, never: NO_NETWORK },
    Floor { name: "catalog", ours: &["core"], never: ROWS },
    Floor { name: "lineage", ours: &["core"], never: ROWS },
    Floor { name: "engine", ours: &["core", "codec"], never: &["ballista"] },
    Floor {
        name: "lakebed",
        ours: &["core", "codec", "delta", "iceberg", "hudi", "paimon", "catalog", "lineage", "engine"],
        never: &["ballista", "clap"],
    },
    Floor { name: "cli", ours: &["core", "engine", "lakebed", "server"], never: ROWS },
    Floor { name: "server", ours: &["core", "engine", "lakebed"], never: &["ballista", "clap"] },
    Floor { name: "python", ours: &["core", "engine", "lakebed"], never: &["ballista", "clap"] },
    Floor { name: "dist", ours: &["core", "engine", "lakebed"], never: &["clap"] },
];

pub(super) fn check(sources: &[Source]) -> Vec<Complaint> {
    let manifests = sources.iter().filter(|it| it.name.starts_with("crates/") && it.name.ends_with("/Cargo.toml"));
    manifests.flat_map(manifest).collect()
}

fn manifest(source: &Source) -> Vec<Complaint> {
    let krate = source.krate().unwrap_or_default();
    let Some(floor) = FLOORS.iter().find(|it| it.name == krate) else {
        return vec![Complaint::of(source, "this crate has no floor: give it one in the tidy test")];
    };
    let mut complaints = Vec::new();
    for (name, test_only) in dependencies(&source.text) {
        let ours = name.strip_prefix("lakebed-").or((name == "lakebed").then_some("lakebed"));
        let allowed = match ours {
            // Tests may use the testkit, and formats to try what is above them with.
            Some(ours) => {
                floor.ours.contains(&ours) || (test_only && (ours == "testkit" || FORMAT_CRATES.contains(&ours)))
            }
            None => test_only || !floor.never.iter().any(|it| name.starts_with(it)),
        };
        if !allowed {
            complaints.push(Complaint::of(source, format!("{krate} must not depend on {name}")));
        }
    }
    complaints
}

const FORMAT_CRATES: [&str; 4] = ["delta", "iceberg", "hudi", "paimon"];

/// Names of dependencies, and whether they are for tests or builds only.
fn dependencies(manifest: &str) -> Vec<(String, bool)> {
    let mut found = Vec::new();
    let mut section: Option<bool> = None;
    for line in manifest.lines().map(str::trim) {
        if let Some(header) = line.strip_prefix('[') {
            let header = header.trim_end_matches(']');
            section = match header.rsplit('.').next() {
                Some("dependencies") => Some(false),
                Some("dev-dependencies" | "build-dependencies") => Some(true),
                _ => None,
            };
            // `[dependencies.parquet]`
            let parts: Vec<&str> = header.split('.').collect();
            if let [.., "dependencies", name] = parts.as_slice() {
                found.push(((*name).to_owned(), false));
            }
            continue;
        }
        let (Some(test_only), Some(end)) = (section, line.find([' ', '=', '.'])) else { continue };
        if !line.starts_with('#') {
            found.push((line[..end].to_owned(), test_only));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(krate: &str, manifest_text: &str) -> Vec<String> {
        let source = Source { name: format!("crates/{krate}/Cargo.toml"), text: manifest_text.into() };
        check(&[source]).into_iter().map(|it| it.what).collect()
    }

    #[test]
    fn each_floor_sees_only_those_below() {
        assert_eq!(said("core", "[dependencies]\nserde.workspace = true\n"), [""; 0]);
        assert_eq!(said("core", "[dependencies]\nparquet = \"1\""), ["core must not depend on parquet"]);
        assert_eq!(
            said("delta", "[dependencies]\nlakebed-iceberg.workspace = true"),
            ["delta must not depend on lakebed-iceberg"]
        );
        assert_eq!(
            said("delta", "[dependencies.datafusion]\nversion = \"1\""),
            ["delta must not depend on datafusion"]
        );
        assert_eq!(said("delta", "[dev-dependencies]\nlakebed-testkit.workspace = true"), [""; 0]);
        assert_eq!(said("nobody", "").len(), 1);
    }
}
