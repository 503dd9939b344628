//! The sources of this workspace.
use lakebed_testkit::tidy;

#[test]
fn the_workspace_is_tidy() {
    let complaints = tidy::check(&tidy::workspace());
    let shown: Vec<String> = complaints.iter().map(ToString::to_string).collect();
    assert!(shown.is_empty(), "{} complaints:\n{}", shown.len(), shown.join("\n"));
}
