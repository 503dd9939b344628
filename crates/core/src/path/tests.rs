//! The corpus: every string a hostile or odd table may name a file by, and what becomes of it.
use super::*;

const LOCAL: &str = "file:///data/t";
const CLOUD: &str = "s3://bucket/warehouse/t";

/// `expected` is the file, `outside <location>`, `refused` or `corrupt`.
#[track_caller]
fn check(resolved: Result<FilePath>, raw: &str, expected: &str) {
    let found = match resolved {
        Ok(FilePath::Below(path)) => path.to_string(),
        Ok(FilePath::Outside(path)) => format!("outside {path}"),
        Err(err) => format!("{:?}", err.kind()).to_lowercase(),
    };
    assert_eq!(found, expected, "{raw:?}");
}

#[test]
fn uris_of_a_local_table() {
    let policy = PathPolicy::new(LOCAL).allow("file:///shared/base");
    for (raw, expected) in [
        // Plain names, and names that look like something else.
        ("a.parquet", "a.parquet"),
        ("p=1/a.parquet", "p=1/a.parquet"),
        ("part-0#1", "part-0#1"),
        ("a?b=c", "a?b=c"),
        ("a:b.parquet", "a:b.parquet"),
        ("t=10:20/a.parquet", "t=10:20/a.parquet"),
        ("10:20/a", "10:20/a"),
        ("file:a.parquet", "file:a.parquet"),
        ("a b.parquet", "a b.parquet"),
        ("a+b.parquet", "a+b.parquet"),
        ("a~b", "a~b"),
        ("...", "..."),
        ("..a", "..a"),
        ("🦀.parquet", "🦀.parquet"),
        ("é", "é"),
        ("\u{202e}txt.a", "\u{202e}txt.a"),
        // Escapes: once, never twice.
        ("a%20b", "a b"),
        ("part=a%2520b/x", "part=a%20b/x"),
        ("_2=bar+%252521/x", "_2=bar+%2521/x"),
        ("test%25file%25prefix", "test%file%prefix"),
        ("a%2Bb", "a+b"),
        ("%F0%9F%A6%80", "🦀"),
        ("a%23b", "a#b"),
        ("a%3Fb", "a?b"),
        ("t=10%3A20/a", "t=10:20/a"),
        ("a%2Fb", "a/b"),
        ("a//b", "a/b"),
        ("a/", "a"),
        // One file, many spellings.
        ("/data/t/p%20x", "p x"),
        ("file:/data/t/p%20x", "p x"),
        ("file:///data/t/p%20x", "p x"),
        ("FILE:///data/t/p%20x", "p x"),
        ("file://localhost/data/t/p%20x", "p x"),
        ("///data/t/p%20x", "p x"),
        ("file:////data//t/p%20x", "p x"),
        // Elsewhere.
        ("file:///shared/base/f%20g", "outside file:///shared/base/f g"),
        ("/shared/base/f", "outside file:///shared/base/f"),
        ("/shared/base", "refused"),
        ("/shared/based/f", "refused"),
        ("file:///etc/passwd", "refused"),
        ("/etc/passwd", "refused"),
        ("/data/t_other/a", "refused"),
        ("/data/tt", "refused"),
        ("/data", "refused"),
        ("s3://other/x", "refused"),
        ("http://169.254.169.254/latest", "refused"),
        ("c:/windows", "refused"),
        ("//host/x", "refused"),
        ("file://host/data/t/x", "refused"),
        // Tricks.
        ("../x", "refused"),
        ("../../etc/passwd", "refused"),
        ("a/../../x", "refused"),
        ("a/../b", "refused"),
        ("%2e%2e/x", "refused"),
        ("..%2Fx", "refused"),
        ("%2E%2e%2f%2e%2E", "refused"),
        ("file:///data/t/../u/x", "refused"),
        ("a\\b", "refused"),
        ("..\\..\\x", "refused"),
        ("a%5Cb", "refused"),
        ("./a", "corrupt"),
        ("a/%2e/b", "corrupt"),
        ("", "corrupt"),
        ("/", "refused"),
        ("file:///data/t", "corrupt"),
        ("file:///data/t/", "corrupt"),
        ("a\0b", "corrupt"),
        ("a%00b", "corrupt"),
        ("a\nb", "corrupt"),
        ("a%0Ab", "corrupt"),
        ("a\u{7f}", "corrupt"),
        ("a%C2%80", "corrupt"),
        ("a%ff", "corrupt"),
        ("a%", "corrupt"),
        ("a%2", "corrupt"),
        ("a%zz", "corrupt"),
        ("a%2é", "corrupt"),
        ("file:///data/t/a?x=1", "corrupt"),
        ("file:///data/t/a#1", "corrupt"),
    ] {
        check(policy.resolve_uri(raw), raw, expected);
    }
}

#[test]
fn uris_of_a_table_in_a_bucket() {
    let policy = PathPolicy::new(CLOUD).allow("abfss://c@acct.dfs.core.windows.net/base");
    for (raw, expected) in [
        ("a.parquet", "a.parquet"),
        ("s3://bucket/warehouse/t/a", "a"),
        ("s3a://bucket/warehouse/t/a", "a"),
        ("s3n://bucket/warehouse/t/a", "a"),
        ("S3A://bucket/warehouse/t/a%20b", "a b"),
        ("/warehouse/t/a", "a"),
        ("s3://Bucket/warehouse/t/a", "refused"),
        ("s3://bucket/warehouse/t2/a", "refused"),
        ("s3://bucket2/warehouse/t/a", "refused"),
        ("s3://user:pass@bucket/warehouse/t/a", "refused"),
        ("s3://bucket@evil/warehouse/t/a", "refused"),
        ("s3://buck%65t/warehouse/t/a", "refused"),
        ("s3:///warehouse/t/a", "refused"),
        ("gs://bucket/warehouse/t/a", "refused"),
        ("file:///warehouse/t/a", "refused"),
        ("abfs://c@ACCT.dfs.core.windows.net/base/x", "outside abfss://c@acct.dfs.core.windows.net/base/x"),
        ("abfss://d@acct.dfs.core.windows.net/base/x", "refused"),
        ("abfss://c:x@acct.dfs.core.windows.net/base/x", "refused"),
        ("unknown://bucket/warehouse/t/a", "refused"),
    ] {
        check(policy.resolve_uri(raw), raw, expected);
    }
}

#[test]
fn plain_paths_are_not_decoded() {
    let policy = PathPolicy::new(CLOUD);
    for (raw, expected) in [
        ("data/a%20b", "data/a%20b"),
        ("s3a://bucket/warehouse/t/a%2e%2e/b", "a%2e%2e/b"),
        ("s3://bucket/warehouse/t/a?b#c", "a?b#c"),
        ("a%", "a%"),
        ("../a", "refused"),
        ("/warehouse/t/a", "a"),
        ("a\0", "corrupt"),
    ] {
        check(policy.resolve_plain(raw), raw, expected);
    }
}

#[test]
fn a_root_may_hold_what_looks_like_an_escape() {
    let policy = PathPolicy::new("file:///data/a%20b/t#1/");
    check(policy.resolve_uri("file:///data/a%2520b/t%231/x"), "absolute", "x");
    check(policy.resolve_uri("file:///data/a%20b/t%231/x"), "absolute", "refused");
}

#[test]
fn a_copied_table_reads_its_old_absolute_paths_here() {
    let policy = PathPolicy::new(LOCAL).moved("s3a://old/place", LOCAL);
    check(policy.resolve_uri("s3://old/place/p%20x"), "moved", "p x");
    check(policy.resolve_uri("s3://old/places/x"), "not moved", "refused");
    let elsewhere = PathPolicy::new(LOCAL).moved("s3://old/place", "file:///other");
    check(elsewhere.resolve_uri("s3://old/place/x"), "moved to a place nobody admitted", "refused");
}

#[test]
fn errors_show_the_path_escaped_and_say_what_to_do() {
    let err = PathPolicy::new(LOCAL).resolve_uri("/etc/\u{202e}x").unwrap_err();
    assert_eq!(err.to_string(), "path `/etc/\\u{202e}x` lies outside the table at file:///data/t");
    assert!(err.hint().is_some_and(|it| it.contains("shallow clone")));
    let endless = "x".repeat(100_000) + "\0";
    assert!(PathPolicy::new(LOCAL).resolve_uri(&endless).unwrap_err().to_string().len() < 1_000);
}

#[test]
fn locations_have_one_spelling() {
    for (raw, expected) in [
        ("s3a://b/t/", "s3://b/t"),
        ("file:/data/t", "file:///data/t"),
        ("file:///data/a%20b", "file:///data/a%20b"),
        ("memory:///t", "memory:///t"),
        ("gs://b", "gs://b"),
    ] {
        assert_eq!(canonical_location(raw).unwrap(), expected, "{raw}");
    }
    for raw in ["", "data/t", "/data/t", "s3://u@b/t", "file:///a/../b"] {
        assert_eq!(canonical_location(raw).unwrap_err().kind(), ErrorKind::Invalid, "{raw}");
    }
}

proptest::proptest! {
    #[test]
    fn nothing_panics_and_nothing_escapes(raw in "\\PC{0,40}|[a-z%2eF/.:#?\\\\]{0,24}") {
        let policy = PathPolicy::new(LOCAL);
        for path in [policy.resolve_uri(&raw), policy.resolve_plain(&raw)].into_iter().flatten() {
            proptest::prop_assert!(matches!(path, FilePath::Below(_)));
            proptest::prop_assert!(path.as_str().split('/').all(|it| !matches!(it, "" | "." | "..")));
        }
    }

    #[test]
    fn the_short_way_leads_to_the_same_place(raw in "[ab=%./: #?\\\\]{0,12}") {
        if location::is_canonical(&raw) {
            for reference in [Reference::encoded(&raw).unwrap(), Reference::plain(&raw).unwrap()] {
                let Reference::Relative(segments) = reference else { panic!("{raw} is relative") };
                proptest::prop_assert_eq!(segments.join("/"), raw.as_str());
            }
        }
    }

    #[test]
    fn a_name_is_the_same_relative_and_absolute(name in "[^\\pC/\\\\]{1,20}") {
        proptest::prop_assume!(name != "." && name != "..");
        let encoded = percent_encoding::utf8_percent_encode(&name, percent_encoding::NON_ALPHANUMERIC).to_string();
        let policy = PathPolicy::new(LOCAL);
        let relative = policy.resolve_uri(&encoded).unwrap();
        proptest::prop_assert_eq!(relative.as_str(), name.as_str());
        proptest::prop_assert_eq!(&policy.resolve_uri(&format!("file:///data/t/{encoded}")).unwrap(), &relative);
        proptest::prop_assert_eq!(&policy.resolve_uri(&format!("/data/t/{encoded}")).unwrap(), &relative);
    }
}
