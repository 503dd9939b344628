//! Parquet files of metadata, written as a stream.
//!
//! Rows are encoded as they come; a row group leaves when it is full or ended, so that memory holds one, encoded. What
//! old readers know is all that is used: Snappy, plain and dictionary encoding, maps and lists in three levels as the
//! caller's schema names them, no Arrow schema.
use std::{
    io,
    sync::{Arc, Mutex},
};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use bytes::Bytes;
use lakebed_core::Result;
use parquet::{
    arrow::{ArrowWriter, arrow_writer::ArrowWriterOptions},
    basic::Compression,
    errors::ParquetError,
    file::properties::WriterProperties,
    schema::types::ColumnPath,
};

use crate::CodecError;

/// A Parquet file under way, whose bytes are taken as they become final.
#[derive(Debug)]
pub struct ParquetStream {
    name: String,
    sink: Sink,
    writer: ArrowWriter<Sink>,
}

impl ParquetStream {
    /// `name` is for errors. Row groups end after `group_rows` rows. `plain` are columns whose values hardly repeat.
    pub fn new(name: &str, schema: SchemaRef, group_rows: usize, plain: &[&[&str]]) -> Result<Self> {
        let mut properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_max_row_group_row_count(Some(group_rows))
            // In the form that readers look for, which is `<name> version <version> (build <hash>)`.
            .set_created_by(concat!("lakebed version ", env!("CARGO_PKG_VERSION"), " (build 0)").to_owned());
        for path in plain {
            let path = path.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
            properties = properties.set_column_dictionary_enabled(ColumnPath::from(path), false);
        }
        let options = ArrowWriterOptions::new().with_properties(properties.build()).with_skip_arrow_metadata(true);
        let sink = Sink::default();
        let writer = ArrowWriter::try_new_with_options(sink.clone(), schema, options);
        let writer = writer.map_err(|source| failed(name, source))?;
        Ok(Self { name: name.to_owned(), sink, writer })
    }

    pub fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        self.writer.write(batch).map_err(|it| failed(&self.name, it).into())
    }

    /// Ends the row group, if it has rows.
    pub fn end_group(&mut self) -> Result<()> {
        self.writer.flush().map_err(|it| failed(&self.name, it).into())
    }

    /// The bytes that are final since they were taken last; often none.
    pub fn taken(&mut self) -> Bytes {
        self.sink.taken()
    }

    /// Ends the file; its last bytes.
    pub fn finish(self) -> Result<Bytes> {
        let Self { name, sink, writer } = self;
        writer.close().map_err(|it| failed(&name, it))?;
        Ok(sink.taken())
    }
}

fn failed(name: &str, source: ParquetError) -> CodecError {
    CodecError::Parquet { file: name.to_owned(), source }
}

/// Where the encoder writes, and the stream takes.
#[derive(Debug, Clone, Default)]
struct Sink(Arc<Mutex<Vec<u8>>>);

impl Sink {
    fn taken(&self) -> Bytes {
        std::mem::take(&mut *self.bytes()).into()
    }

    fn bytes(&self) -> std::sync::MutexGuard<'_, Vec<u8>> {
        // Whole writes only: a panic elsewhere leaves them whole.
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl io::Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::Int64Array;
    use arrow_schema::{DataType, Field, Schema};
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

    use super::*;

    #[test]
    fn the_bytes_taken_on_the_way_and_the_last_are_the_file() {
        let schema = Arc::new(Schema::new(vec![Field::new("n", DataType::Int64, true)]));
        let batch = |values: Vec<i64>| {
            RecordBatch::try_new(Arc::clone(&schema), vec![Arc::new(Int64Array::from(values))]).unwrap()
        };
        let mut file = ParquetStream::new("f", Arc::clone(&schema), 4, &[&["n"]]).unwrap();
        let mut body = Vec::new();
        file.write(&batch(vec![1])).unwrap();
        file.end_group().unwrap();
        for values in [vec![2, 3], vec![4, 5, 6, 7, 8, 9]] {
            file.write(&batch(values)).unwrap();
            body.extend(file.taken());
        }
        body.extend(file.finish().unwrap());
        let reader = ParquetRecordBatchReaderBuilder::try_new(Bytes::from(body)).unwrap();
        let groups: Vec<i64> = reader.metadata().row_groups().iter().map(|it| it.num_rows()).collect();
        assert_eq!(groups, [1, 4, 4]);
        let metadata = reader.metadata().file_metadata();
        assert!(
            metadata.key_value_metadata().is_none() && metadata.created_by().unwrap().starts_with("lakebed version ")
        );
        let rows: Vec<RecordBatch> = reader.build().unwrap().map(Result::unwrap).collect();
        assert_eq!(arrow_array::Array::len(rows[0].column(0)), 9);
    }
}
