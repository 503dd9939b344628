//! Bytes for programs: an Arrow IPC stream, or a Parquet file.
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::SchemaRef;
use lakebed_core::{Error, ErrorKind};
use parquet::{
    arrow::ArrowWriter,
    basic::{Compression, ZstdLevel},
    errors::ParquetError,
    file::properties::WriterProperties,
};

use super::{Out, Sink};
use crate::failure::Failure;

pub(super) struct ArrowSink {
    writer: StreamWriter<Out>,
}

impl ArrowSink {
    pub(super) fn new(out: Out, schema: &SchemaRef) -> Result<Self, Failure> {
        Ok(Self { writer: StreamWriter::try_new(out, schema).map_err(arrow)? })
    }
}

impl Sink for ArrowSink {
    fn batch(&mut self, batch: &RecordBatch) -> Result<(), Failure> {
        self.writer.write(batch).map_err(arrow)
    }

    fn finish(mut self: Box<Self>) -> Result<(), Failure> {
        self.writer.finish().map_err(arrow)?;
        self.writer.flush().map_err(arrow)
    }
}

pub(super) struct ParquetSink {
    writer: ArrowWriter<Out>,
}

impl ParquetSink {
    pub(super) fn new(out: Out, schema: &SchemaRef) -> Result<Self, Failure> {
        let properties = WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::default())).build();
        let writer = ArrowWriter::try_new(out, Arc::clone(schema), Some(properties)).map_err(of_parquet)?;
        Ok(Self { writer })
    }
}

impl Sink for ParquetSink {
    fn batch(&mut self, batch: &RecordBatch) -> Result<(), Failure> {
        self.writer.write(batch).map_err(of_parquet)
    }

    fn finish(mut self: Box<Self>) -> Result<(), Failure> {
        self.writer.finish().map_err(of_parquet)?;
        Ok(self.writer.inner_mut().flush()?)
    }
}

fn arrow(err: arrow_schema::ArrowError) -> Failure {
    match err {
        arrow_schema::ArrowError::IoError(_, io) => Failure::Output(io),
        other => Error::new(ErrorKind::Unsupported, format!("cannot write these rows as arrow: {other}")).into(),
    }
}

fn of_parquet(err: ParquetError) -> Failure {
    match err {
        ParquetError::External(inner) => match inner.downcast::<std::io::Error>() {
            Ok(io) => Failure::Output(*io),
            Err(other) => {
                Error::new(ErrorKind::Unsupported, format!("cannot write these rows as parquet: {other}")).into()
            }
        },
        other => Error::new(ErrorKind::Unsupported, format!("cannot write these rows as parquet: {other}")).into(),
    }
}
