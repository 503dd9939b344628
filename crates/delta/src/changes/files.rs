//! Files of a commit → data files and vectors.
use std::collections::BTreeMap;

use lakebed_core::{
    Result,
    expr::Scalar,
    file::{DataFile, DeleteFile, FileStats},
    path::{FilePath, PathPolicy},
    version::Millis,
};

use crate::{
    error::DeltaError,
    log::Commit,
    partition,
    schema::{TableSchema, physical_name},
    spec::{Add, Metadata, Protocol, Remove},
    stats::{StatsPlan, num_records},
};

/// Reads files of commits with the schema of their version.
#[derive(Debug, Clone)]
pub(crate) struct Files {
    policy: PathPolicy,
    protocol: Protocol,
    /// `None` while no schema is known that this build can read: files then have neither partition values nor bounds.
    schema: Option<(TableSchema, StatsPlan)>,
}

impl Files {
    /// Starts without a schema, until a commit sets one.
    pub(crate) fn without_schema(policy: PathPolicy) -> Self {
        Self { policy, protocol: Protocol::default(), schema: None }
    }

    /// Starts with the schema of a state, if this build can read it.
    pub(crate) fn new(policy: PathPolicy, protocol: &Protocol, metadata: &Metadata) -> Self {
        Self { policy, protocol: protocol.clone(), schema: readable(protocol, metadata) }
    }

    pub(crate) fn policy(&self) -> &PathPolicy {
        &self.policy
    }

    pub(crate) fn protocol(&self) -> &Protocol {
        &self.protocol
    }

    /// Takes over the protocol and schema a commit sets.
    pub(crate) fn follow(&mut self, commit: &Commit) {
        if let Some(protocol) = commit.protocol() {
            self.protocol = protocol.clone();
        }
        if let Some(metadata) = commit.metadata() {
            self.schema = readable(&self.protocol, metadata);
        }
    }

    /// An added file, and the vector on it.
    pub(crate) fn added(&self, add: &Add) -> Result<(DataFile, Option<DeleteFile>)> {
        let path = self.policy.resolve_uri(&add.path)?;
        let vector = add.deletion_vector.as_ref().map(|it| it.delete_file(&path, &self.policy)).transpose()?;
        let mut file = DataFile::parquet(path, bytes(&add.path, add.size)?);
        file.stats = self.stats(add.stats.as_deref());
        file.partition = self.partition(&add.path, &add.partition_values)?;
        file.first_row_id = add.base_row_id.and_then(|it| u64::try_from(it).ok());
        file.row_version = add.default_row_commit_version.and_then(|it| u64::try_from(it).ok());
        file.modified_at = Some(Millis(add.modification_time));
        Ok((file, vector))
    }

    /// A removed file as it was, and the vector that was on it; 0 bytes where the log does not say how many.
    ///
    /// # Errors
    /// Corrupt if the table is partitioned and the action leaves the values out.
    pub(crate) fn removed(&self, remove: &Remove) -> Result<(DataFile, Option<DeleteFile>)> {
        let path = self.policy.resolve_uri(&remove.path)?;
        let vector = self.vector_of(remove)?;
        let mut file = DataFile::parquet(path, bytes(&remove.path, remove.size.unwrap_or(0))?);
        file.stats = self.stats(remove.stats.as_deref());
        file.partition = match &remove.partition_values {
            Some(values) => self.partition(&remove.path, values)?,
            None if self.partitioned() => {
                return Err(DeltaError::NoPartitionValues { file: remove.path.clone() }.into());
            }
            None => Vec::new(),
        };
        file.first_row_id = remove.base_row_id.and_then(|it| u64::try_from(it).ok());
        file.row_version = remove.default_row_commit_version.and_then(|it| u64::try_from(it).ok());
        Ok((file, vector))
    }

    /// The vector that was on a removed file.
    pub(crate) fn vector_of(&self, remove: &Remove) -> Result<Option<DeleteFile>> {
        let path = self.policy.resolve_uri(&remove.path)?;
        remove.deletion_vector.as_ref().map(|it| it.delete_file(&path, &self.policy)).transpose()
    }

    /// Partition values by the table's column names.
    pub(crate) fn partition(
        &self,
        file: &str,
        values: &BTreeMap<String, Option<String>>,
    ) -> Result<Vec<(String, Option<Scalar>)>, DeltaError> {
        let Some((schema, _)) = &self.schema else { return Ok(Vec::new()) };
        let fields = schema.partition_fields();
        let read = fields.map(|field| {
            let text = values.get(physical_name(field)).and_then(|it| it.as_deref());
            Ok((field.name().clone(), partition::parse(file, field, text)?))
        });
        read.collect()
    }

    /// Fails if `values` leaves out a partition column: its rows would come out null.
    pub(crate) fn check_named(&self, file: &str, values: &BTreeMap<String, Option<String>>) -> Result<(), DeltaError> {
        let mut fields = self.schema.iter().flat_map(|(schema, _)| schema.partition_fields());
        match fields.find(|it| !values.contains_key(physical_name(it))) {
            Some(field) => Err(partition::missing(file, field)),
            None => Ok(()),
        }
    }

    fn partitioned(&self) -> bool {
        self.schema.as_ref().is_some_and(|(schema, _)| !schema.partition.is_empty())
    }

    fn stats(&self, text: Option<&str>) -> FileStats {
        match (text, &self.schema) {
            (Some(text), Some((_, plan))) => plan.read(text),
            (Some(text), None) => FileStats { rows: num_records(text), ..FileStats::default() },
            (None, _) => FileStats::default(),
        }
    }
}

fn readable(protocol: &Protocol, metadata: &Metadata) -> Option<(TableSchema, StatsPlan)> {
    let schema = TableSchema::of(protocol, metadata).ok()?;
    let plan = StatsPlan::of(&schema, None);
    Some((schema, plan))
}

/// A size from the log.
pub(crate) fn bytes(file: &str, size: i64) -> Result<u64, DeltaError> {
    u64::try_from(size).map_err(|_| DeltaError::BadNumber { file: file.to_owned(), field: "size", value: size })
}

/// The path of a file that must be asked how large it is.
pub(crate) fn of_unknown_size(file: &DataFile) -> Option<&FilePath> {
    (file.bytes == 0).then_some(&file.path)
}
