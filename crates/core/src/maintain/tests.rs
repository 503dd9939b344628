use super::*;
use crate::{
    timeline::{Action, Details, Instant, State},
    version::RefKind,
};

#[test]
fn what_a_rule_or_a_ref_names_stays_and_so_does_the_newest() {
    let version = |(number, at): (usize, i64)| Version {
        id: VersionId::new(number.to_string()),
        committed_at: Millis(at),
        parent: number.checked_sub(1).map(|it| VersionId::new(it.to_string())),
        schema_id: None,
    };
    let instant = |it: Version| Instant {
        requested_at: it.committed_at,
        action: Action::RowDelta,
        state: State::Completed { at: it.committed_at, version: Some(it) },
        native_action: "test".to_owned(),
        details: Details::default(),
    };
    let timeline = Timeline::new([0, 10, 20, 30, 40].into_iter().enumerate().map(version).map(instant).collect());
    let refs = [Ref {
        name: "keep".to_owned(),
        kind: RefKind::Tag,
        version: VersionId::new("1"),
        created_at: None,
        expires_at: None,
    }];
    let age = |ms| Some(Duration::from_millis(ms));
    let all = Retain::default;
    for (retain, refs, expected) in [
        (all(), &[][..], "4"),
        (all(), &refs[..], "1 4"),
        (Retain { at_least: 2, ..all() }, &[][..], "3 4"),
        (Retain { at_least: 99, ..all() }, &[][..], "0 1 2 3 4"),
        (Retain { newer_than: Some(Millis(20)), ..all() }, &[][..], "3 4"),
        (Retain { age: age(20), ..all() }, &refs[..], "1 4"),
        (Retain { age: age(21), ..all() }, &[][..], "3 4"),
        (Retain { age: Some(Duration::MAX), ..all() }, &[][..], "0 1 2 3 4"),
        (Retain { ids: vec![VersionId::new("0")], ..all() }, &[][..], "0 4"),
    ] {
        let kept: Vec<&str> = retain.kept(&timeline, refs, Millis(50)).iter().map(|it| it.id.as_str()).collect();
        assert_eq!(kept.join(" "), expected, "{retain:?}");
    }
    assert!(all().kept(&Timeline::default(), &[], Millis(0)).is_empty());
}
