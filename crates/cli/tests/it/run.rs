//! Runs the binary in a world of its own: no configuration, no colours, no terminal.
use std::{
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

/// What one call did.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// A command in `folder` that sees nothing of the machine it runs on.
pub(crate) fn command(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lakebed"));
    command.current_dir(folder).env_clear().env("HOME", folder).env("PATH", "/usr/bin:/bin").stdin(Stdio::null());
    command
}

pub(crate) fn lakebed_in(folder: &Path, args: &[&str]) -> Ran {
    ran(command(folder).args(args).output().unwrap())
}

pub(crate) fn ran(output: Output) -> Ran {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Ran { code: output.status.code().unwrap(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// A folder of its own for each test.
pub(crate) struct World {
    folder: tempfile::TempDir,
}

impl World {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    /// A copy of a table of deltalake's as `orders`, with the times its commits have.
    pub(crate) fn with_orders() -> Self {
        let world = Self::new();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/orders");
        copy(&source, &world.path("orders"));
        const HOURS: [u64; 8] = [0, 26, 50, 74, 99, 123, 147, 171];
        for (version, hours) in HOURS.iter().enumerate() {
            let path = world.path(&format!("orders/_delta_log/{version:020}.json"));
            let at = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_793_610_000 + hours * 3600);
            std::fs::File::options().write(true).open(path).unwrap().set_modified(at).unwrap();
        }
        world
    }

    pub(crate) fn root(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        lakebed_in(self.root(), args)
    }

    /// stdout of a call that must succeed, without the temporary folder's name.
    pub(crate) fn shown(&self, args: &[&str]) -> String {
        let ran = self.run(args);
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{args:?}: {}", ran.stdout);
        self.tidy(&ran.stdout)
    }

    pub(crate) fn tidy(&self, text: &str) -> String {
        let real = self.root().canonicalize().unwrap();
        text.replace(&real.display().to_string(), "").replace(&self.root().display().to_string(), "")
    }

    pub(crate) fn json(&self, args: &[&str]) -> serde_json::Value {
        serde_json::from_str(&self.shown(args)).unwrap()
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}
