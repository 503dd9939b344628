//! The directory catalog and the opening of tables by name, path and revision.
use std::{fs, path::Path};

use lakebed::{
    Lakebed,
    config::{Config, Origin},
};
use lakebed_core::{
    ErrorKind,
    catalog::{Catalog as _, TableIdent},
};

const COMMIT: &str = concat!(
    r#"{"protocol":{"minReaderVersion":1,"minWriterVersion":2}}"#,
    "\n",
    r#"{"metaData":{"id":"t","format":{"provider":"parquet","options":{}},"schemaString":"{\"type\":\"struct\",\"fields\":[]}","partitionColumns":[],"configuration":{},"createdTime":1}}"#,
    "\n"
);

fn table(folder: &Path) {
    fs::create_dir_all(folder.join("_delta_log")).unwrap();
    fs::write(folder.join("_delta_log/00000000000000000000.json"), COMMIT).unwrap();
}

fn world() -> (tempfile::TempDir, Lakebed) {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("lakehouse");
    for name in ["default/orders", "default/Customers", "sales/Daily", "sales/daily", "sales/a.b"] {
        table(&root.join(name));
    }
    fs::create_dir_all(root.join("sales/not-a-table")).unwrap();
    fs::create_dir_all(root.join("_hidden/t")).unwrap();
    fs::create_dir_all(root.join("empty")).unwrap();
    table(&folder.path().join("loose@3"));
    let lake = Lakebed::builder().base(folder.path()).build().unwrap();
    (folder, lake)
}

fn ident(schema: &str, name: &str) -> TableIdent {
    TableIdent { namespace: vec![schema.to_owned()], name: name.to_owned() }
}

#[tokio::test]
async fn schemas_are_folders_and_tables_are_folders_with_a_format() {
    let (_folder, lake) = world();
    let catalog = lake.catalog();
    assert_eq!(catalog.namespaces(&[]).await.unwrap().concat(), ["default", "empty", "sales"]);
    let names = |schema: &str| {
        let schema = vec![schema.to_owned()];
        async move { catalog.tables(&schema).await.unwrap().into_iter().map(|it| it.name).collect::<Vec<_>>() }
    };
    assert_eq!(names("default").await, ["Customers", "orders"]);
    assert_eq!(names("SALES").await, ["Daily", "a.b", "daily"]);
    assert!(names("empty").await.is_empty());
}

#[tokio::test]
async fn names_match_without_case_and_keep_theirs() {
    let (_folder, lake) = world();
    let loaded = lake.catalog().load(&ident("DEFAULT", "customers")).await.unwrap();
    assert_eq!((loaded.ident.namespace.concat(), loaded.ident.name), ("default".to_owned(), "Customers".to_owned()));
    assert_eq!(loaded.format.name(), "delta");
    for exact in ["Daily", "daily"] {
        assert_eq!(lake.catalog().load(&ident("sales", exact)).await.unwrap().ident.name, exact);
    }
    let err = lake.catalog().load(&ident("sales", "DAILY")).await.unwrap_err();
    assert_eq!(err.kind(), ErrorKind::Invalid);
    assert!(err.to_string().starts_with("`DAILY` could be `Daily` or `daily` in "), "{err}");
}

#[tokio::test]
async fn what_is_not_there_is_told_with_the_nearest_name() {
    let (_folder, lake) = world();
    let cases = [
        ("default", "ordes", "did you mean `orders`?"),
        ("defualt", "orders", "did you mean `default`?"),
        ("empty", "x", "this schema has no tables"),
    ];
    for (schema, name, hint) in cases {
        let err = lake.catalog().load(&ident(schema, name)).await.unwrap_err();
        assert_eq!((err.kind(), err.hint()), (ErrorKind::NotFound, Some(hint)), "{schema}.{name}");
    }
}

/// RELIABILITY row 60: a name never becomes a path by being put into one.
#[tokio::test]
async fn names_that_are_no_folder_names_are_refused() {
    let (_folder, lake) = world();
    for name in ["", "..", "../orders", "a/b", "a\\b", ".hidden", "_delta_log", "a\0b", "a\nb"] {
        for (schema, name) in [("default", name), (name, "orders")] {
            let err = lake.catalog().load(&ident(schema, name)).await.unwrap_err();
            assert_eq!(err.kind(), ErrorKind::Invalid, "{schema:?}.{name:?}: {err}");
        }
    }
}

#[tokio::test]
async fn tables_open_by_name_path_and_revision() {
    let (_folder, lake) = world();
    let cases = [
        ("orders", "orders", None),
        ("sales.Daily", "sales.Daily", None),
        ("lake.sales.\"a.b\"", "lake.sales.\"a.b\"", None),
        ("orders@v0", "orders", Some("v0")),
        ("./lakehouse/default/orders", "./lakehouse/default/orders", None),
        ("lakehouse/default/orders@{2 hours ago}", "lakehouse/default/orders", Some("{2 hours ago}")),
        // The literal path is there, so its `@` is part of its name.
        ("loose@3", "loose@3", None),
        ("loose@3@0", "loose@3", Some("0")),
    ];
    for (text, name, revision) in cases {
        let opened = lake.open(text, None).await.unwrap();
        assert_eq!((opened.name.as_str(), opened.revision.as_deref()), (name, revision), "{text}");
    }
}

/// RELIABILITY rows 1 and 2.
#[tokio::test]
async fn no_table_and_no_folder_are_told_apart() {
    let (folder, lake) = world();
    fs::create_dir_all(folder.path().join("void")).unwrap();
    let err = lake.open("./void", None).await.unwrap_err();
    assert_eq!(err.kind(), ErrorKind::NotFound);
    assert!(err.to_string().contains("looked for delta"), "{err}");
    let err = lake.open("./vodi", None).await.unwrap_err();
    assert_eq!(err.to_string(), "./vodi: there is no such folder");
    assert!(err.hint().unwrap().ends_with("/void?"), "{err:?}");
    fs::write(folder.path().join("file"), "").unwrap();
    let err = lake.open("./file", None).await.unwrap_err();
    assert_eq!((err.kind(), err.to_string().as_str()), (ErrorKind::Invalid, "./file is a file; a table is a folder"));
    let err = lake.open("./void", Some("icebreg")).await.unwrap_err();
    assert_eq!(err.kind(), ErrorKind::Invalid);
}

#[tokio::test]
async fn another_warehouse_is_another_catalog() {
    let (folder, _) = world();
    let mut config = Config::default();
    config.set("warehouse", "elsewhere".to_owned(), Origin::Flag("test")).unwrap();
    let lake = Lakebed::builder().base(folder.path()).config(config).build().unwrap();
    assert!(lake.catalog().namespaces(&[]).await.unwrap().is_empty());
    let err = lake.open("orders", None).await.unwrap_err();
    assert_eq!(err.hint(), Some("name another folder with --warehouse, or give the table's path"));
}
