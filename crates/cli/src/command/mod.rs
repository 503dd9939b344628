//! One file a verb.
use crate::{
    args::{Global, Verb},
    door::Door,
    failure::{Failure, Verdict},
};

pub(crate) mod at;
pub(crate) mod checkpoint;
pub(crate) mod compact;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod demo;
pub(crate) mod diff;
pub(crate) mod doctor;
pub(crate) mod expire;
pub(crate) mod files;
pub(crate) mod head;
pub(crate) mod info;
pub(crate) mod log;
pub(crate) mod man;
pub(crate) mod orphans;
pub(crate) mod overview;
pub(crate) mod plan;
pub(crate) mod refs;
pub(crate) mod restore;
pub(crate) mod schema;
pub(crate) mod show;
pub(crate) mod sql;
pub(crate) mod tag;
pub(crate) mod timeline;
pub(crate) mod vacuum;

/// Carries out one verb.
pub(crate) async fn run(door: &Door, verb: Verb, global: &Global) -> Result<Verdict, Failure> {
    match verb {
        Verb::Sql(args) => sql::run(door, &args).await,
        Verb::Log(args) => log::run(door, &args).await,
        Verb::Show(args) => show::run(door, &args).await,
        Verb::Info(args) => info::run(door, &args).await,
        Verb::Schema(args) => schema::run(door, &args).await,
        Verb::Files(args) => files::run(door, &args).await,
        Verb::Timeline(args) => timeline::run(door, &args).await,
        Verb::Refs(args) => refs::run(door, &args).await,
        Verb::At(args) => at::run(door, &args).await,
        Verb::Head(args) => head::run(door, &args).await,
        Verb::Diff(args) => diff::run(door, &args).await,
        Verb::Doctor(args) => doctor::run(door, &args).await,
        Verb::Tag(args) => tag::run(door, &args).await,
        Verb::Restore(args) => restore::run(door, &args).await,
        Verb::Vacuum(args) => vacuum::run(door, &args).await,
        Verb::Orphans(args) => orphans::run(door, &args).await,
        Verb::Expire(args) => expire::run(door, &args).await,
        Verb::Compact(args) => compact::run(door, &args).await,
        Verb::Checkpoint(args) => checkpoint::run(door, &args).await,
        Verb::Demo(args) => demo::run(door, &args, global).await,
        Verb::Config(args) => config::run(door, &args),
        Verb::Completions(args) => completions::run(&args),
        Verb::Man(args) => man::run(&args),
    }
}
