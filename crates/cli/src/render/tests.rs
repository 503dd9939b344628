use std::sync::{Mutex, PoisonError};

use arrow_array::{ArrayRef, Int64Array, StringArray, TimestampMillisecondArray};
use insta::assert_snapshot;

use super::*;

/// Keeps what was written.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<u8>>>);

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn rows() -> RecordBatch {
    let columns: [(&str, ArrayRef); 3] = [
        ("id", Arc::new(Int64Array::from(vec![Some(1), Some(20), None]))),
        ("name", Arc::new(StringArray::from(vec![Some("名前"), Some("a,\"b\"\n|\tc\x1b[31m"), Some("")]))),
        ("at", Arc::new(TimestampMillisecondArray::from(vec![Some(0), None, Some(1)]).with_timezone("UTC"))),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

fn printer(format: Format) -> Printer {
    let terminal = Terminal { stdout: false, stderr: false, color: false, color_stderr: false, width: None };
    Printer { format, terminal, columns: None, limit: None }
}

fn bytes(printer: &Printer, batches: &[RecordBatch], envelope: Option<&Envelope>) -> Vec<u8> {
    let kept = Kept::default();
    let mut sink = printer.sink(Box::new(kept.clone()), &rows().schema(), envelope).unwrap();
    for batch in batches {
        sink.batch(batch).unwrap();
    }
    sink.finish().unwrap();
    Arc::into_inner(kept.0).unwrap().into_inner().unwrap()
}

fn shown(printer: &Printer, batches: &[RecordBatch], envelope: Option<&Envelope>) -> String {
    String::from_utf8(bytes(printer, batches, envelope)).unwrap().replace('\x1b', "ESC")
}

#[test]
fn tables_align_and_never_break_a_line() {
    assert_snapshot!(shown(&printer(Format::Table), &[rows()], None), @r#"
      id  name                   at
       1  名前                   1970-01-01T00:00:00.000Z
      20  a,"b"\n|\tc\u{1b}[31m  NULL
    NULL                         1970-01-01T00:00:00.001Z
    "#);
}

#[test]
fn text_formats_quote_what_would_break_them() {
    assert_snapshot!(shown(&printer(Format::Csv), &[rows()], None), @r#"
    id,name,at
    1,名前,1970-01-01T00:00:00.000Z
    20,"a,""b""
    |	cESC[31m",
    ,"",1970-01-01T00:00:00.001Z
    "#);
    assert_snapshot!(shown(&printer(Format::Tsv), &[rows()], None), @r#"
    id	name	at
    1	名前	1970-01-01T00:00:00.000Z
    20	a,"b"\n|\tcESC[31m	
    		1970-01-01T00:00:00.001Z
    "#);
    assert_snapshot!(shown(&printer(Format::Markdown), &[rows()], None), @r#"
    | id | name | at |
    | ---: | --- | --- |
    | 1 | 名前 | 1970-01-01T00:00:00.000Z |
    | 20 | a,"b"<br>\| c [31m |  |
    |  |  | 1970-01-01T00:00:00.001Z |
    "#);
    assert_snapshot!(shown(&printer(Format::Vertical), &[rows()], None), @r#"
    Row 1:
    ──────
    id:   1
    name: 名前
    at:   1970-01-01T00:00:00.000Z

    Row 2:
    ──────
    id:   20
    name: a,"b"
    |	cESC[31m
    at:   ᴺᵁᴸᴸ

    Row 3:
    ──────
    id:   ᴺᵁᴸᴸ
    name: 
    at:   1970-01-01T00:00:00.001Z
    "#);
}

#[test]
fn json_is_one_array_or_one_envelope() {
    assert_snapshot!(shown(&printer(Format::Json), &[rows(), rows().slice(0, 1)], None), @r#"
    [{"id":1,"name":"名前","at":"1970-01-01T00:00:00.000Z"},
     {"id":20,"name":"a,\"b\"\n|\tc\u001b[31m","at":null},
     {"id":null,"name":"","at":"1970-01-01T00:00:00.001Z"},
     {"id":1,"name":"名前","at":"1970-01-01T00:00:00.000Z"}]
    "#);
    assert_snapshot!(shown(&printer(Format::Json), &[], None), @"[]");
    assert_snapshot!(shown(&printer(Format::Ndjson), &[rows().slice(0, 2)], None), @r#"
    {"id":1,"name":"名前","at":"1970-01-01T00:00:00.000Z"}
    {"id":20,"name":"a,\"b\"\n|\tc\u001b[31m","at":null}
    "#);
    assert_eq!(shown(&printer(Format::Ndjson), &[], None), "");
    let envelope = Envelope::new("lakebed.test/1", "file:///a\"b");
    assert_snapshot!(shown(&printer(Format::Json), &[rows().slice(0, 2)], Some(&envelope)), @r#"
    {"schema":"lakebed.test/1","table":"file:///a\"b","rows":[{"id":1,"name":"名前","at":"1970-01-01T00:00:00.000Z","at_ms":0},
     {"id":20,"name":"a,\"b\"\n|\tc\u001b[31m","at":null,"at_ms":null}]}
    "#);
}

#[test]
fn columns_and_limit_narrow_every_format() {
    let narrow =
        Printer { columns: Some(vec!["AT".to_owned(), "id".to_owned()]), limit: Some(4), ..printer(Format::Csv) };
    assert_snapshot!(shown(&narrow, &[rows(), rows()], None), @r#"
    at,id
    1970-01-01T00:00:00.000Z,1
    ,20
    1970-01-01T00:00:00.001Z,
    1970-01-01T00:00:00.000Z,1
    "#);
    let wrong = Printer { columns: Some(vec!["nmae".to_owned()]), ..printer(Format::Csv) };
    let err = wrong.sink(Box::new(Kept::default()), &rows().schema(), None).err().unwrap();
    let Failure::Core(err) = err else { panic!("{err}") };
    assert_eq!(
        (err.to_string().as_str(), err.hint()),
        ("--columns: there is no column `nmae`", Some("did you mean `name`?"))
    );
}

#[test]
fn arrow_and_parquet_read_back_equal() {
    let arrow = bytes(&printer(Format::Arrow), &[rows(), rows()], None);
    let read: Vec<RecordBatch> =
        arrow_ipc::reader::StreamReader::try_new(arrow.as_slice(), None).unwrap().map(Result::unwrap).collect();
    assert_eq!(read, [rows(), rows()]);
    let parquet = bytes(&printer(Format::Parquet), &[rows()], None);
    let reader = parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(bytes::Bytes::from(parquet));
    let read: Vec<RecordBatch> = reader.unwrap().build().unwrap().map(Result::unwrap).collect();
    assert_eq!(read.len(), 1);
    assert_eq!(read[0].columns(), rows().columns());
}

#[test]
fn on_a_terminal_the_widest_column_gives_way() {
    let terminal = Terminal { stdout: true, stderr: true, color: true, color_stderr: true, width: Some(30) };
    let printer = Printer { terminal, ..printer(Format::Table) };
    let text = shown(&printer, &[rows()], None);
    let widest = text.lines().map(|it| crate::terminal::width(&strip(it))).max().unwrap();
    assert!(widest <= 30, "{text}");
    assert!(text.contains('…') && text.contains("ESC[1m"), "{text}");
}

/// Without our own colours.
fn strip(line: &str) -> String {
    ["ESC[0m", "ESC[1m", "ESC[2m"].iter().fold(line.to_owned(), |line, it| line.replace(it, ""))
}
