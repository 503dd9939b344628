use arrow_array::{BinaryArray, Int64Array};
use parquet_variant_compute::json_to_variant;

use super::*;

fn variants(json: &[Option<&str>]) -> ArrayRef {
    let text: ArrayRef = Arc::new(StringArray::from(json.to_vec()));
    Arc::new(json_to_variant(&text).unwrap().into_inner())
}

fn field(array: &ArrayRef) -> Field {
    let marked = [(EXTENSION_TYPE_NAME_KEY.to_owned(), NAMES[0].to_owned())];
    Field::new("v", array.data_type().clone(), true).with_metadata(marked.into())
}

fn texts(array: &ArrayRef) -> Vec<Option<String>> {
    array.as_string::<i32>().iter().map(|it| it.map(str::to_owned)).collect()
}

#[test]
fn variants_become_json_text_and_nulls_stay() {
    let array = variants(&[Some(r#"{"a":1,"b":[true,null]}"#), None, Some("7")]);
    let json: ArrayRef = Arc::new(variant_json_array(&array).unwrap());
    assert_eq!(texts(&json), [Some(r#"{"a":1,"b":[true,null]}"#.to_owned()), None, Some("7".to_owned())]);
}

#[test]
fn damaged_bytes_are_errors_or_other_values_never_a_panic() {
    let array = variants(&[Some(r#"{"a":1,"bc":[true,null,"text"]}"#)]);
    for part in 0..2 {
        let sound = cast(array.as_struct().column(part), &DataType::Binary).unwrap();
        let sound = sound.as_binary::<i32>().value(0).to_vec();
        for at in 0..sound.len() {
            for flip in [1, 0x40, 0xff] {
                let mut bytes = sound.clone();
                bytes[at] ^= flip;
                let mut columns: Vec<ArrayRef> = (0..2).map(|it| Arc::clone(array.as_struct().column(it))).collect();
                columns[part] = cast(&BinaryArray::from(vec![bytes.as_slice()]), columns[part].data_type()).unwrap();
                let fields = array.as_struct().fields().clone();
                let damaged: ArrayRef = Arc::new(StructArray::try_new(fields, columns, None).unwrap());
                if let Err(ArrowError::ExternalError(err)) = variant_json_array(&damaged) {
                    assert!(err.to_string().contains("a variant value"), "{err}");
                }
            }
        }
    }
}

#[test]
fn shredded_values_come_back() {
    let array = variants(&[Some(r#"{"a":1,"b":"x"}"#), Some("3")]);
    let shape = DataType::Struct(vec![Field::new("a", DataType::Int64, true)].into());
    let shredded = parquet_variant_compute::shred_variant(&VariantArray::try_new(&array).unwrap(), &shape).unwrap();
    let shredded: ArrayRef = Arc::new(shredded.into_inner());
    let json: ArrayRef = Arc::new(variant_json_array(&shredded).unwrap());
    assert_eq!(texts(&json), [Some(r#"{"a":1,"b":"x"}"#.to_owned()), Some("3".to_owned())]);
}

#[test]
fn nested_variants_become_text_where_they_are() {
    let array = variants(&[Some("1"), Some("[2]")]);
    let inner = Fields::from(vec![field(&array), Field::new("n", DataType::Int64, true)]);
    let numbers: ArrayRef = Arc::new(Int64Array::from(vec![5, 6]));
    let parent: ArrayRef = Arc::new(StructArray::try_new(inner.clone(), vec![array, numbers], None).unwrap());
    let parent_field = Field::new("s", DataType::Struct(inner), true);
    let shown = variants_as_json(&parent_field, &parent).unwrap();
    assert_eq!(shown.data_type(), json_field(&parent_field).data_type());
    assert_eq!(texts(shown.as_struct().column(0)), [Some("1".to_owned()), Some("[2]".to_owned())]);
}

#[test]
fn what_is_no_variant_is_an_error() {
    let array: ArrayRef = Arc::new(BinaryArray::from(vec![&b"x"[..]]));
    assert!(variant_json_array(&array).is_err());
}
