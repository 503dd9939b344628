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
