//! What happens while a write is on its way, to a store that takes it and says nothing: Ctrl-C, and other writers.
use std::{
    fs,
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
};

use crate::{
    fake::{Conditions, Dialect, FakeCloud},
    run::{Ran, World, command},
};

/// The commit that a tag makes.
const COMMIT: &str = "_delta_log/00000000000000000008.json";

struct Silent {
    world: World,
    cloud: FakeCloud,
    _runtime: tokio::runtime::Runtime,
}

impl Silent {
    /// A cloud with the table `orders`, that answers every write but the next commit.
    fn new() -> Self {
        let world = World::with_orders();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let cloud = runtime.block_on(FakeCloud::start(Dialect::S3, Conditions::Honoured));
        upload(&cloud, &world.path("orders"), "orders");
        cloud.keep_silent(COMMIT);
        Self { world, cloud, _runtime: runtime }
    }

    /// A command that makes a tag, once its commit was sent.
    fn tagging(&self) -> Child {
        let child = self.start(&["tag", "create", "x", "s3://shop/orders", "--upgrade"]);
        self.wait_for(|it| it.starts_with("PUT") && it.ends_with(COMMIT));
        child
    }

    fn start(&self, args: &[&str]) -> Child {
        command(self.world.root())
            .env("LAKEBED_STORE_S3_ENDPOINT", self.cloud.endpoint())
            .env("LAKEBED_STORE_S3_ALLOW_HTTP", "true")
            .env("LAKEBED_STORE_S3_CREDENTIALS", "none")
            .env("AWS_REGION", "eu-west-1")
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// Waits until the cloud got such a request. A command that never sends it ends when its cloud does.
    fn wait_for(&self, wanted: impl Fn(&str) -> bool) {
        for _ in 0..3_000 {
            if self.cloud.requests().iter().any(|it| wanted(it)) {
                return;
            }
            pause();
        }
        panic!("no such request: {:?}", self.cloud.requests());
    }
}

fn upload(cloud: &FakeCloud, folder: &Path, key: &str) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let key = format!("{key}/{}", entry.file_name().to_string_lossy());
        if entry.file_type().unwrap().is_dir() {
            upload(cloud, &entry.path(), &key);
        } else {
            cloud.put(&key, &fs::read(entry.path()).unwrap());
        }
    }
}

fn pause() {
    assert!(Command::new("sleep").arg("0.01").status().unwrap().success());
}

fn interrupt(child: &Child) {
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
}

/// Interrupts once, and waits until the command says that it waits.
fn interrupt_and_listen(child: &mut Child) -> BufReader<std::process::ChildStderr> {
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    interrupt(child);
    let mut line = String::new();
    stderr.read_line(&mut line).unwrap();
    assert!(line.contains("a commit is on its way"), "{line}");
    stderr
}

fn end(child: Child, mut stderr: BufReader<std::process::ChildStderr>) -> Ran {
    let mut text = String::new();
    std::io::Read::read_to_string(&mut stderr, &mut text).unwrap();
    let output = child.wait_with_output().unwrap();
    Ran { code: output.status.code().unwrap(), stdout: String::from_utf8(output.stdout).unwrap(), stderr: text }
}

#[test]
fn the_second_interrupt_leaves_and_says_that_the_outcome_is_unknown() {
    let silent = Silent::new();
    let mut child = silent.tagging();
    let stderr = interrupt_and_listen(&mut child);
    interrupt(&child);
    let ran = end(child, stderr);
    assert_eq!(ran.code, 10, "{}", ran.stderr);
    assert!(ran.stderr.contains("error[E-UNKNOWN]") && ran.stderr.contains(COMMIT), "{}", ran.stderr);
    assert!(ran.stderr.contains("hint: look at"), "{}", ran.stderr);
    assert!(silent.cloud.keys().iter().any(|it| it.ends_with(COMMIT)), "it landed, and nobody knew");
}

#[test]
fn an_answer_that_comes_in_time_is_the_answer() {
    let silent = Silent::new();
    let mut child = silent.tagging();
    let stderr = interrupt_and_listen(&mut child);
    silent.cloud.keep_silent("");
    let ran = end(child, stderr);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stdout.contains("committed_in\t8"), "{}", ran.stdout);
}

/// A data file is on its way while another writer changes the table's properties.
#[test]
fn a_commit_that_cannot_follow_another_ends_with_4() {
    let silent = Silent::new();
    silent.cloud.keep_silent(".parquet");
    let child = silent.start(&["sql", "-c", "UPDATE delta.`s3://shop/orders` SET order_id = order_id + 1"]);
    silent.wait_for(|it| it.starts_with("PUT") && it.ends_with(".parquet"));
    let first = fs::read_to_string(silent.world.path("orders/_delta_log/00000000000000000000.json")).unwrap();
    let metadata = first.lines().find(|it| it.contains("\"metaData\"")).unwrap();
    let changed = metadata.replacen("\"configuration\":{", "\"configuration\":{\"mine\":\"x\"", 1);
    assert_ne!(changed, metadata);
    silent.cloud.put(&format!("orders/{COMMIT}"), changed.as_bytes());
    silent.cloud.keep_silent("");
    let ran = crate::run::ran(child.wait_with_output().unwrap());
    assert_eq!((ran.code, ran.stdout.as_str()), (4, ""), "{}", ran.stderr);
    assert!(ran.stderr.starts_with("error[E-CONFLICT]: UPDATE lost to "), "{}", ran.stderr);
    assert!(ran.stderr.contains("hint: nothing was committed"), "{}", ran.stderr);
}
