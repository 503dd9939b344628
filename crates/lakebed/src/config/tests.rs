use super::*;

struct World {
    folder: tempfile::TempDir,
    environment: BTreeMap<String, String>,
}

impl World {
    fn new(user: &str, project: &str, variables: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("home/lakebed")).unwrap();
        std::fs::write(folder.path().join("home/lakebed/config.toml"), user).unwrap();
        std::fs::write(folder.path().join("lakebed.toml"), project).unwrap();
        let home = folder.path().join("home").display().to_string();
        let mut environment: BTreeMap<String, String> =
            variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        environment.insert("XDG_CONFIG_HOME".to_owned(), home);
        Self { folder, environment }
    }

    fn load(&self) -> Result<Config> {
        Config::load(&self.environment, self.folder.path())
    }

    fn error(&self) -> String {
        let text = self.load().unwrap_err().to_string();
        text.replace(&self.folder.path().display().to_string(), "")
    }
}

#[test]
fn later_layers_win_and_origins_tell() {
    let user = "warehouse = 'a'\ntz = 'Asia/Tokyo'\n[store.s3]\nregion = 'eu-west-1'\n";
    let world = World::new(user, "\nwarehouse = 'b'\n", &[("LAKEBED_TZ", "Europe/Berlin"), ("LAKEBED_OTHER", "x")]);
    let mut config = world.load().unwrap();
    config.set("memory", "1GiB".to_owned(), Origin::Flag("--memory")).unwrap();
    let shown: Vec<String> = config
        .entries()
        .filter_map(|(key, entry)| Some((key.name, entry?)))
        .filter(|(_, entry)| entry.origin != Origin::Default)
        .map(|(name, entry)| {
            let origin = entry.origin.to_string().replace(&world.folder.path().display().to_string(), "");
            format!("{name}={} ({origin})", entry.value)
        })
        .collect();
    assert_eq!(
        shown,
        [
            "memory=1GiB (flag --memory)",
            "store.s3.region=eu-west-1 (/home/lakebed/config.toml:4)",
            "tz=Europe/Berlin (variable LAKEBED_TZ)",
            "warehouse=b (/lakebed.toml:2)",
        ]
    );
    assert_eq!(config.get("color"), Some("auto"));
    assert_eq!(config.bytes("memory"), Some(1 << 30));
}

#[test]
fn mistakes_name_file_and_line() {
    let cases = [
        ("", "[store.s3]\nregoin = 'x'", "/lakebed.toml:2: unknown key `store.s3.regoin`"),
        ("", "warehouse = [1", "/lakebed.toml:1: unclosed array, expected `]`"),
        ("x = 1", "", "/home/lakebed/config.toml:1: unknown key `x`"),
        ("", "color = 'blue'", "/lakebed.toml:1: `color` must be one of auto, always, never, not `blue`"),
        ("read_only = 'perhaps'", "", "/home/lakebed/config.toml:1: `read_only` must be true or false, not `perhaps`"),
        ("", "paths.allow = ['/']", "/lakebed.toml:1: `paths.allow`: such a value cannot be set by a folder's file"),
        (
            "",
            "store.s3.credentials = 'command:id'",
            "/lakebed.toml:1: `store.s3.credentials`: such a value cannot be set by a folder's file",
        ),
        ("tz = 1.5", "", "/home/lakebed/config.toml:1: `tz` must be a text, a number, true, false or a list of texts"),
    ];
    for (user, project, expected) in cases {
        assert_eq!(World::new(user, project, &[]).error(), expected);
    }
}

#[test]
fn a_secret_written_in_the_file_is_refused_and_not_repeated() {
    let text = World::new("store.s3.credentials = 'AKIACANARY'", "", &[]).error();
    assert!(text.contains("by reference, not by value") && !text.contains("CANARY"), "{text}");
}

#[test]
fn lists_come_from_files_and_variables() {
    let world = World::new("paths.allow = ['s3://a', 's3://b']", "", &[]);
    assert_eq!(world.load().unwrap().list("paths.allow"), ["s3://a", "s3://b"]);
    let world = World::new("", "", &[("LAKEBED_PATHS_ALLOW", "s3://a,s3://b")]);
    assert_eq!(world.load().unwrap().list("paths.allow"), ["s3://a", "s3://b"]);
    assert!(World::new("", "", &[]).load().unwrap().list("paths.allow").is_empty());
}

#[test]
fn a_profile_wins_over_files_and_loses_to_variables() {
    let user =
        "warehouse = 'a'\n[profile.prod]\nwarehouse = 'p'\ntz = 'Asia/Tokyo'\n[profile.prod.store.s3]\nregion = 'r'\n";
    let project = "warehouse = 'b'\n[profile.prod]\nmemory = '1GiB'\n[profile.test]\nwarehouse = 't'\n";
    type Case = (&'static [(&'static str, &'static str)], Option<&'static str>, &'static str);
    let cases: [Case; 5] = [
        (&[], None, "b UTC - -"),
        (&[], Some("prod"), "p Asia/Tokyo r 1GiB"),
        (&[("LAKEBED_PROFILE", "test")], None, "t UTC - -"),
        (&[("LAKEBED_PROFILE", "test"), ("LAKEBED_TZ", "Europe/Berlin")], Some("prod"), "p Europe/Berlin r 1GiB"),
        (&[("LAKEBED_WAREHOUSE", "v")], Some("test"), "v UTC - -"),
    ];
    for (variables, profile, expected) in cases {
        let world = World::new(user, project, variables);
        let config = Config::load_with(&world.environment, world.folder.path(), profile).unwrap();
        let shown = ["warehouse", "tz", "store.s3.region", "memory"].map(|it| config.get(it).unwrap_or("-").to_owned());
        assert_eq!(shown.join(" "), expected, "{variables:?} {profile:?}");
    }
    let world = World::new(user, project, &[("LAKEBED_PROFILE", "prd")]);
    let err = world.load().unwrap_err();
    assert_eq!((err.to_string().as_str(), err.hint()), ("no profile `prd`", Some("there is prod, test")));
    let folder_command = "[profile.x]\nstore.s3.credentials = 'command:id'";
    assert!(World::new("", folder_command, &[]).error().contains("cannot be set by a folder's file"));
    assert!(World::new("[profile.x]\nregoin = 1", "", &[]).error().contains(":2: unknown key `regoin`"));
}
