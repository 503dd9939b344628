//! The actions of a checkpoint that are no files.
use lakebed_core::{Result, env::Env};
use serde_json::{Value, json};

use crate::{
    properties::Properties,
    spec::{DomainMetadata, Metadata, Protocol, Txn},
    state::State,
};

pub(super) struct Small {
    protocol: Protocol,
    metadata: Metadata,
    txns: Vec<Txn>,
    domains: Vec<DomainMetadata>,
}

impl Small {
    pub(super) async fn of(state: &State, env: &Env) -> Result<Self> {
        let properties = Properties(&state.metadata.configuration);
        // A table that says nothing, or nothing sensible, keeps them all.
        let kept = properties.interval("delta.setTransactionRetentionDuration").ok().flatten();
        let oldest = kept.map(|it| super::super::before(env.clock.now(), it).0);
        let stays = |it: &Txn| oldest.is_none_or(|oldest| it.last_updated.is_none_or(|at| at > oldest));
        Ok(Self {
            protocol: plain(&state.protocol),
            metadata: state.metadata.clone(),
            txns: state.txns().await?.into_values().filter(stays).collect(),
            domains: state.domains().await?.into_values().collect(),
        })
    }

    /// As lines of a commit spell them.
    pub(super) fn classic(&self) -> Vec<Value> {
        let head = [json!({ "protocol": self.protocol }), json!({ "metaData": self.metadata })];
        let txns = self.txns.iter().map(|it| json!({ "txn": it }));
        let domains = self.domains.iter().map(|it| json!({ "domainMetadata": it }));
        head.into_iter().chain(txns).chain(domains).collect()
    }

    /// With the action that makes it a V2 checkpoint of `version`.
    pub(super) fn v2(&self, version: u64) -> Vec<Value> {
        let mark = json!({ "checkpointMetadata": { "version": version } });
        std::iter::once(mark).chain(self.classic()).collect()
    }
}

/// Without the lists of features that do not count at its versions: readers take them for damage.
fn plain(protocol: &Protocol) -> Protocol {
    let mut plain = protocol.clone();
    if plain.min_reader_version < 3 {
        plain.reader_features = None;
    }
    if plain.min_writer_version < 7 {
        plain.writer_features = None;
    }
    plain
}
