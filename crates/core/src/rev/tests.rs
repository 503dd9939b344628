mod named;

use self::named::Named;
use super::*;
use crate::{
    ErrorKind,
    path::FilePath,
    time::Tz,
    version::{Millis, RefKind},
};

const NOW: Millis = Millis(1_796_040_000_000);

#[test]
fn tables_and_revisions_are_split_at_the_last_at_sign_that_may_be_one() {
    for (text, table, rev) in [
        ("t", "t", None),
        ("t@v3", "t", Some("v3")),
        ("lake/orders@42", "lake/orders", Some("42")),
        ("a@b@c", "a@b", Some("c")),
        ("t@", "t", Some("")),
        ("@v3", "@v3", None),
        ("", "", None),
        ("s3://b/t@tag:release", "s3://b/t", Some("tag:release")),
        ("abfss://c@acct.dfs.core.windows.net/t", "abfss://c@acct.dfs.core.windows.net/t", None),
        ("abfss://c@acct.dfs.core.windows.net/t@7", "abfss://c@acct.dfs.core.windows.net/t", Some("7")),
        ("s3://c@h", "s3://c@h", None),
        ("t@{2026-10-04 20:57:02 Asia/Shanghai}", "t", Some("{2026-10-04 20:57:02 Asia/Shanghai}")),
        ("t@{a@b}", "t", Some("{a@b}")),
        ("t@{a@b", "t", Some("{a@b")),
        ("{x@y}", "{x", Some("y}")),
        ("t@feature/x", "t", Some("feature/x")),
        ("🦀@é", "🦀", Some("é")),
    ] {
        assert_eq!(split_table_rev(text), (table, rev), "{text}");
    }
}

#[test]
fn revisions_are_read() {
    let version = |it: &str| Base::Version(it.to_owned());
    let name = |it: &str| Base::Name(it.to_owned());
    for (text, base, back) in [
        ("42", version("42"), 0),
        ("v42", version("42"), 0),
        ("V42", version("42"), 0),
        ("007", version("7"), 0),
        ("0", version("0"), 0),
        ("000", version("0"), 0),
        ("3547395809148285433", version("3547395809148285433"), 0),
        ("20240601120000000", version("20240601120000000"), 0),
        ("99999999999999999999", version("99999999999999999999"), 0),
        ("release", name("release"), 0),
        ("eod-28", name("eod-28"), 0),
        ("-x-", name("-x-"), 0),
        ("v", name("v"), 0),
        ("v1.2", name("v1.2"), 0),
        ("other:x", name("other:x"), 0),
        ("tag:release", Base::Tag("release".into()), 0),
        ("savepoint:20240601120000000", Base::Tag("20240601120000000".into()), 0),
        ("branch:dev/x", Base::Branch("dev/x".into()), 0),
        ("set:eod", Base::Tag("lakebed-set-eod".into()), 0),
        ("head", Base::Head, 0),
        ("HEAD", Base::Head, 0),
        ("earliest", Base::Earliest, 0),
        ("latest-readable", Base::LatestReadable, 0),
        ("{2 hours ago}", Base::Time("2 hours ago".into()), 0),
        ("{2 hours ago}~2", Base::Time("2 hours ago".into()), 2),
        ("~3", Base::Head, 3),
        ("~", Base::Head, 1),
        ("^", Base::Head, 1),
        ("-", Base::Head, 1),
        ("head~3", Base::Head, 3),
        ("release^^", name("release"), 2),
        ("42~2^~3", version("42"), 6),
        (" head ", Base::Head, 0),
    ] {
        let rev = Rev::parse(text).unwrap_or_else(|it| panic!("{text}: {it}"));
        assert_eq!((rev.base, rev.back), (base, back), "{text}");
    }
}

#[test]
fn what_is_no_revision_is_an_error_with_the_grammar() {
    let long = "x".repeat(2_000);
    for text in [
        "",
        " ",
        "~-1",
        "~x",
        "head~99999999999999999999",
        "head~18446744073709551615^",
        "head~1x",
        "head^x",
        "{2026",
        "{now}x",
        "{now}é",
        "tag:",
        "set:",
        "a\0b",
        "a\nb",
        long.as_str(),
        "~3é",
    ] {
        let err = Rev::parse(text).expect_err(text);
        assert_eq!(err.kind(), ErrorKind::Invalid, "{text}");
        assert!(err.hint().is_some() && err.to_string().len() < 300);
    }
}

/// Versions 0 to 4; 1 to 4 are a second apart from 2026-11-30T11:00:01Z.
fn table() -> Named {
    let mut table = Named::new(&[0, 1_796_036_401_000, 1_796_036_402_000, 1_796_036_403_000, 1_796_036_404_000]);
    table.name("release", RefKind::Tag, "2");
    table.name("v1", RefKind::Tag, "1");
    table.name("dev", RefKind::Branch, "3");
    table.name("3", RefKind::Tag, "4");
    table.name("both", RefKind::Tag, "1");
    table.name("both", RefKind::Branch, "2");
    table.name("same", RefKind::Tag, "2");
    table.name("same", RefKind::Branch, "2");
    table.name("odd~1", RefKind::Tag, "0");
    table.name("head", RefKind::Tag, "1");
    table.name("lakebed-set-eod", RefKind::Tag, "2");
    table
}

async fn at(table: &Named, text: &str) -> String {
    let rev = match Rev::parse(text) {
        Ok(rev) => rev,
        Err(err) => return err.to_string(),
    };
    match resolve(&rev, table, NOW, &Tz::UTC).await {
        Ok(resolved) => resolved.version.id.to_string(),
        Err(err) => format!("{:?}: {err}; {}", err.kind(), err.hint().unwrap_or("no hint")),
    }
}

#[tokio::test]
async fn revisions_are_found() {
    let table = table();
    for (text, expected) in [
        ("head", "4"),
        ("earliest", "0"),
        ("2", "2"),
        ("v2", "2"),
        ("002", "2"),
        ("release", "2"),
        ("tag:release", "2"),
        ("savepoint:release", "2"),
        ("branch:dev", "3"),
        ("set:eod", "2"),
        ("same", "2"),
        ("v1", "1"),
        ("-", "3"),
        ("^", "3"),
        ("~3", "1"),
        ("release~2", "0"),
        ("odd~1", "0"),
        ("tag:head", "1"),
        ("branch:release", "NotFound: `release` is a tag, not a branch; write `tag:release`"),
        ("{2026-11-30 11:00:02.5}", "2"),
        ("{2026-11-30 11:00:02}", "2"),
        ("{2026-11-30T19:00:03+08:00}^", "2"),
        ("{now}", "4"),
        ("tag:3", "4"),
        ("v3", "3"),
        // Nothing found, or two.
        ("3", "Invalid: `3` is the tag of version 4, and version 3 is there as well; write `tag:3` or `v3`"),
        (
            "both",
            "Invalid: `both` is both a tag and a branch, of different versions; write `tag:both` or `branch:both`",
        ),
        ("tag:both", "1"),
        (
            "head~5",
            "NotFound: `head~5` goes back 5 versions, but only 4 are known before 4; the oldest known version is 0",
        ),
        (
            "relaese",
            "NotFound: no version, tag or branch is named `relaese`; there is `release`, `head`, `same`, `dev`, `3`, `both`, `odd~1`, `v1` and 1 more",
        ),
        ("tag:dev", "NotFound: `dev` is a branch, not a tag; write `branch:dev`"),
        (
            "{tomorrow}",
            "Invalid: `tomorrow` is no time; write `2026-10-04 20:57:02`, `2026-10-04T20:57:02+08:00`, `2026-10-04`, `2 hours ago`, `yesterday`",
        ),
    ] {
        assert_eq!(at(&table, text).await, expected, "{text}");
    }
    assert!(at(&table, "99999999999999999999").await.starts_with("NotFound"));
    assert!(at(&table, "99999999999999999999").await.contains("`release`"), "candidates are named");
}

#[tokio::test]
async fn a_ref_and_a_version_of_one_name_that_differ_are_an_error() {
    let mut table = Named::new(&[0; 4]);
    table.name("v1", RefKind::Tag, "3");
    let found = at(&table, "v1").await;
    assert_eq!(found, "Invalid: `v1` is the tag of version 3, and version 1 is there as well; write `tag:v1` or `1`");
    assert_eq!(at(&table, "1").await, "1");
    assert_eq!(at(&table, "tag:v1~2").await, "1");
    assert!(at(&table, "v1~1").await.starts_with("Invalid"));
}

#[tokio::test]
async fn parents_are_followed_where_ids_are_random() {
    let mut table = Named::new(&[0]);
    table.push("77", Some("0"), 0);
    table.push("13", Some("0"), 0);
    table.push("55", Some("77"), 0);
    assert_eq!(at(&table, "55^").await, "77");
    assert_eq!(at(&table, "55~2").await, "0");
    assert_eq!(at(&table, "13^").await, "0");
    assert!(at(&table, "13~2").await.starts_with("NotFound"));
}

#[tokio::test]
async fn the_newest_readable_version_has_all_its_files() {
    let table = table();
    for name in ["f0", "f1", "f2"] {
        assert_eq!(table.storage.create(name, "x".into()).await.unwrap(), crate::storage::Put::Won);
    }
    assert_eq!(at(&table, "latest-readable").await, "2");
    assert_eq!(at(&table, "latest-readable^").await, "1");
    let _ = table.storage.delete(&[FilePath::below("f0")]).await.unwrap();
    assert_eq!(at(&table, "latest-readable").await, "NotFound: none of the 5 versions has all its files; no hint");
}

#[tokio::test]
async fn a_version_that_cannot_be_planned_is_not_readable_and_silence_says_nothing() {
    for (kind, expected) in [
        (ErrorKind::Corrupt, "2"),
        (ErrorKind::Refused, "2"),
        (ErrorKind::Unavailable, "Unavailable"),
        (ErrorKind::Unauthorized, "Unauthorized"),
    ] {
        for planned in [false, true] {
            let mut table = table();
            for file in ["f0", "f1", "f2", "f3", "f4"] {
                assert_eq!(table.storage.create(file, "x".into()).await.unwrap(), crate::storage::Put::Won);
            }
            let errors = if planned { &mut table.planning } else { &mut table.opening };
            errors.extend([("3", kind), ("4", kind)]);
            let found = at(&table, "latest-readable").await;
            assert_eq!(found.split(':').next(), Some(expected), "{kind:?}, planned: {planned}");
        }
    }
}

#[tokio::test]
async fn ranges_start_after_their_first_version() {
    let table = table();
    for (text, expected) in [
        ("1..v3", "1 3"),
        ("release..", "2 4"),
        ("..release", "- 2"),
        ("..", "- 4"),
        ("2...dev", "2 3"),
        ("dev...2", "2 2"),
        ("{2026-11-30 11:00:01}..{2026-11-30 11:00:03.9}", "1 3"),
        ("head~2..head", "2 4"),
    ] {
        let range = RevRange::parse(text).unwrap().unwrap();
        let (from, to) = resolve_range(&range, &table, NOW, &Tz::UTC).await.unwrap_or_else(|it| panic!("{text}: {it}"));
        assert_eq!(
            format!("{} {}", from.map_or("-".into(), |it| it.id.to_string()), to.version.id),
            expected,
            "{text}"
        );
    }
    for text in ["head", "{a..b}", "v1.2", "", "tag:x~2"] {
        assert_eq!(RevRange::parse(text).unwrap(), None, "{text}");
    }
    for text in ["...", "a...", "...b", "~x..b", "a..~x"] {
        assert_eq!(RevRange::parse(text).unwrap_err().kind(), ErrorKind::Invalid, "{text}");
    }
}

proptest::proptest! {
    #[test]
    fn never_panics(text in "\\PC{0,30}|[@{}~^.:v0-9a-]{0,24}") {
        let (table, rev) = split_table_rev(&text);
        proptest::prop_assert_eq!(rev.map_or(text.clone(), |rev| format!("{table}@{rev}")), text.clone());
        let _ = Rev::parse(&text);
        let _ = RevRange::parse(&text);
    }

    #[test]
    fn looking_up_never_panics(text in "[~^0-9va-c-]{1,8}") {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let table = table();
            let _ = at(&table, &text).await;
        });
    }
}
