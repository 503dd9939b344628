//! What the mission asks of the verbs; see `crates/lakebed/tests/it/mission`.
mod delta_log {
    use std::fs;

    use serde_json::Value;

    use crate::run::World;

    fn commit(version: u64) -> String {
        format!("t/_delta_log/{version:020}.json")
    }

    /// The table `t` with the versions 0 to 5.
    fn table() -> World {
        let world = World::new();
        let script = "CREATE TABLE delta.`./t` (id BIGINT); SET lakebed.commit.user_metadata = 'by hand'; \
                      INSERT INTO delta.`./t` VALUES (1), (2); RESET ALL; INSERT INTO delta.`./t` VALUES (3); \
                      DELETE FROM delta.`./t` WHERE id = 2; INSERT INTO delta.`./t` VALUES (4); OPTIMIZE delta.`./t`";
        let ran = world.run(&["-q", "sql", "-c", script]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        world
    }

    fn errors(world: &World) -> Vec<Value> {
        let ran = world.run(&["doctor", "t", "-o", "json"]);
        assert_eq!(ran.code, 1, "{}{}", ran.stdout, ran.stderr);
        let told: Value = serde_json::from_str(&ran.stdout).unwrap();
        told["rows"].as_array().unwrap().iter().filter(|it| it["level"] == "ERROR").cloned().collect()
    }

    #[test]
    fn item_09_doctor_and_a_plain_read_name_the_missing_commit() {
        let world = table();
        fs::remove_file(world.path(&commit(3))).unwrap();
        let found = errors(&world);
        let text = serde_json::to_string(&found).unwrap();
        assert!(text.contains("version 3") || text.contains("00000000000000000003.json"), "{text}");
        assert!(text.contains("versions that can still be read: 0-2"), "{text}");
        let read = world.run(&["head", "t"]);
        assert_eq!(read.code, 6);
        assert!(
            read.stderr.starts_with("error[E-CORRUPT]: log version 3 is gone, but 4 is there\n"),
            "{}",
            read.stderr
        );
        assert!(read.stderr.contains("hint: version 2 is the newest that can still be read"), "{}", read.stderr);
        assert_eq!(world.run(&["head", "t@2"]).code, 0, "and it can");
    }

    #[test]
    fn item_09_doctor_and_a_plain_read_name_the_missing_data_file() {
        let world = table();
        let files = world.json(&["files", "t", "-o", "json"]);
        let gone = files["rows"][0]["path"].as_str().unwrap().to_owned();
        fs::remove_file(world.path("t").join(&gone)).unwrap();
        let found = errors(&world);
        assert!(found.iter().any(|it| it["object"] == *gone), "{gone} in {found:?}");
        let log = world.json(&["log", "t", "-o", "json"]);
        let readable = |at: usize| log["rows"][at]["readable"].as_str().unwrap();
        assert_eq!((readable(0), readable(1)), ("files-missing 1", "yes"));
        let read = world.run(&["head", "t"]);
        assert!(read.code != 0 && read.stderr.contains(&gone), "{}", read.stderr);
        assert_eq!(world.run(&["head", "t@4"]).code, 0);
    }

    #[test]
    fn item_14_log_and_show_tell_the_history() {
        let world = table();
        let log = world.json(&["log", "t", "-o", "json"]);
        let operations: Vec<&str> =
            log["rows"].as_array().unwrap().iter().map(|it| it["operation"].as_str().unwrap()).collect();
        assert_eq!(operations, ["OPTIMIZE", "WRITE", "DELETE", "WRITE", "WRITE", "CREATE TABLE"]);
        let shown = world.shown(&["show", "t@1", "-o", "vertical"]);
        for part in ["WRITE", "by hand", "Lakebed/", "WriteSerializable", "numOutputRows", "mode", "read_version"] {
            assert!(shown.contains(part), "`show` lacks {part}: {shown}");
        }
        let shown = world.shown(&["show", "t@3", "-o", "vertical"]);
        for part in ["DELETE", "predicate", "numDeletedRows"] {
            assert!(shown.contains(part), "`show` lacks {part}: {shown}");
        }
    }
}
