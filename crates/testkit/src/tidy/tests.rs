use super::*;

#[test]
fn a_dead_fixture_is_found() {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir_all(root.path().join("testdata/delta/lonely")).unwrap();
    let said: Vec<String> = check(root.path()).into_iter().map(|it| it.what).collect();
    assert_eq!(said.len(), 3, "{said:?}");
    fs::write(root.path().join("testdata/README.md"), "lonely").unwrap();
    fs::write(root.path().join("testdata/delta/lonely/fixture.toml"), "").unwrap();
    fs::write(root.path().join("a.rs"), "\"delta/lonely\"").unwrap();
    assert_eq!(check(root.path()), []);
}

#[test]
fn a_sibling_out_of_shape_is_found() {
    let source = |name: &str| Source { name: format!("crates/hudi/src/{name}.rs"), text: String::new() };
    let said = shape::check(&[source("lib"), source("util")]);
    assert!(said.iter().any(|it| it.what.contains("`util` is in no sibling")));
    assert!(said.iter().any(|it| it.what == "`scan` is missing"));
}
