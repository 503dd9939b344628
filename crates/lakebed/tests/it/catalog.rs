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

/// What the catalog makes, renames and drops.
mod changes {
    use std::{path::PathBuf, sync::Arc};

    use arrow_schema::{DataType, Field, Schema};
    use lakebed_core::{
        format::{CreateTable, FormatKind},
        table::Layout,
    };
    use lakebed_testkit::pond::{POND, Pond};

    use super::*;

    fn world() -> (tempfile::TempDir, Lakebed) {
        let folder = tempfile::tempdir().unwrap();
        let lake = Lakebed::builder().base(folder.path()).format(Arc::new(Pond)).build().unwrap();
        (folder, lake)
    }

    fn one_column() -> CreateTable {
        let schema = Arc::new(Schema::new(vec![Field::new("id", DataType::Int64, true)]));
        CreateTable { schema, layout: Layout::default(), properties: Vec::new(), comment: None }
    }

    fn hidden(schema: &Path) -> Vec<PathBuf> {
        let entries = fs::read_dir(schema).unwrap().map(|it| it.unwrap().path());
        entries.filter(|it| it.file_name().unwrap().to_string_lossy().starts_with(".lakebed-dropped")).collect()
    }

    #[tokio::test]
    async fn a_table_is_made_renamed_and_dropped() {
        let (folder, lake) = world();
        let catalog = lake.catalog().as_ref();
        catalog.create(&ident("default", "Orders"), POND, one_column()).await.unwrap();
        let root = folder.path().join("lakehouse/default");
        assert!(root.join("Orders/pond/log").is_dir(), "the default schema is made with its first table");
        for name in ["Orders", "orders"] {
            let err = catalog.create(&ident("default", name), POND, one_column()).await.unwrap_err();
            assert_eq!(err.kind(), ErrorKind::AlreadyExists, "{name}: {err}");
        }
        let place = catalog.place(&ident("default", "later"), POND).await.unwrap();
        assert!(place.storage.location().ends_with("/default/later") && !root.join("later").exists());
        catalog.rename(&ident("default", "ORDERS"), &ident("default", "sales")).await.unwrap();
        assert_eq!(catalog.load(&ident("default", "sales")).await.unwrap().ident.name, "sales");
        catalog.drop(&ident("default", "sales")).await.unwrap();
        assert_eq!(catalog.load(&ident("default", "sales")).await.unwrap_err().kind(), ErrorKind::NotFound);
        assert!(hidden(&root).is_empty() && !root.join("sales").exists());
        let err = catalog.drop(&ident("default", "sales")).await.unwrap_err();
        assert_eq!(err.kind(), ErrorKind::NotFound);
    }

    #[tokio::test]
    async fn a_rename_overwrites_nothing_and_may_change_the_case() {
        let (_folder, lake) = world();
        let catalog = lake.catalog().as_ref();
        for name in ["a", "b"] {
            catalog.create(&ident("default", name), POND, one_column()).await.unwrap();
        }
        let err = catalog.rename(&ident("default", "a"), &ident("default", "B")).await.unwrap_err();
        assert_eq!(err.kind(), ErrorKind::AlreadyExists, "{err}");
        catalog.rename(&ident("default", "a"), &ident("default", "A")).await.unwrap();
        let names: Vec<String> =
            catalog.tables(&["default".to_owned()]).await.unwrap().into_iter().map(|it| it.name).collect();
        assert_eq!(names, ["A", "b"]);
        let err = catalog.rename(&ident("default", "A"), &ident("nowhere", "A")).await.unwrap_err();
        assert_eq!(err.kind(), ErrorKind::NotFound, "{err}");
    }

    #[tokio::test]
    async fn schemas_are_made_and_dropped_when_they_hold_nothing() {
        let (folder, lake) = world();
        let catalog = lake.catalog().as_ref();
        let sales = vec!["sales".to_owned()];
        let err = catalog.create(&ident("sales", "t"), POND, one_column()).await.unwrap_err();
        assert_eq!(err.kind(), ErrorKind::NotFound, "{err}");
        assert!(err.hint().unwrap().contains("CREATE SCHEMA"), "{err:?}");
        catalog.create_namespace(&sales).await.unwrap();
        assert_eq!(catalog.namespaces(&[]).await.unwrap().concat(), ["sales"]);
        let err = catalog.create_namespace(&["Sales".to_owned()]).await.unwrap_err();
        assert_eq!(err.kind(), ErrorKind::AlreadyExists);
        catalog.create(&ident("sales", "t"), POND, one_column()).await.unwrap();
        let err = catalog.drop_namespace(&sales).await.unwrap_err();
        assert_eq!(err.kind(), ErrorKind::Refused, "{err}");
        catalog.drop(&ident("sales", "t")).await.unwrap();
        fs::write(folder.path().join("lakehouse/sales/notes.txt"), "mine").unwrap();
        let err = catalog.drop_namespace(&sales).await.unwrap_err();
        assert_eq!(err.kind(), ErrorKind::Refused, "{err}");
        fs::remove_file(folder.path().join("lakehouse/sales/notes.txt")).unwrap();
        catalog.drop_namespace(&sales).await.unwrap();
        assert!(!folder.path().join("lakehouse/sales").exists());
        assert_eq!(catalog.drop_namespace(&sales).await.unwrap_err().kind(), ErrorKind::NotFound);
    }

    #[tokio::test]
    async fn odd_names_are_not_given() {
        let (folder, lake) = world();
        let catalog = lake.catalog().as_ref();
        let long = "x".repeat(201);
        for name in
            ["", "..", "a/b", "a\\b", ".a", "_a", "a$history", "a@1", "a`b", "a\"b", "a ", "a.", "a\tb", "a:b", &long]
        {
            let err = catalog.create(&ident("default", name), POND, one_column()).await.unwrap_err();
            assert_eq!(err.kind(), ErrorKind::Invalid, "{name:?}: {err}");
            let err = catalog.create_namespace(&[name.to_owned()]).await.unwrap_err();
            assert_eq!(err.kind(), ErrorKind::Invalid, "{name:?}: {err}");
        }
        assert!(!folder.path().join("lakehouse").exists(), "nothing was made");
        for name in ["Bestellungen 2026", "注文", "a-b_c.d"] {
            catalog.create(&ident("default", name), POND, one_column()).await.unwrap();
            catalog.drop(&ident("default", name)).await.unwrap();
        }
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn nothing_behind_a_link_is_dropped_and_no_folder_that_is_no_table() {
        let (folder, lake) = world();
        let catalog = lake.catalog().as_ref();
        let root = folder.path().join("lakehouse");
        table(&folder.path().join("elsewhere/t"));
        fs::create_dir_all(root.join("default/notes")).unwrap();
        std::os::unix::fs::symlink(folder.path().join("elsewhere/t"), root.join("default/t")).unwrap();
        std::os::unix::fs::symlink(folder.path().join("elsewhere"), root.join("linked")).unwrap();
        for (schema, name) in [("default", "t"), ("linked", "t"), ("default", "notes")] {
            let before = catalog.drop(&ident(schema, name)).await.unwrap_err();
            assert!(matches!(before.kind(), ErrorKind::Refused | ErrorKind::NotFound), "{schema}.{name}: {before}");
            let moved = catalog.rename(&ident(schema, name), &ident("default", "u")).await.unwrap_err();
            assert!(matches!(moved.kind(), ErrorKind::Refused | ErrorKind::NotFound), "{schema}.{name}: {moved}");
        }
        assert!(folder.path().join("elsewhere/t/_delta_log/00000000000000000000.json").is_file());
        assert!(root.join("default/notes").is_dir());
    }

    /// A drop that died after the rename: the table is gone, and the next drop there clears up.
    #[tokio::test]
    async fn what_a_crash_left_of_a_drop_goes_with_the_next() {
        let (folder, lake) = world();
        let catalog = lake.catalog().as_ref();
        for name in ["a", "b"] {
            catalog.create(&ident("default", name), POND, one_column()).await.unwrap();
        }
        let root = folder.path().join("lakehouse/default");
        fs::rename(root.join("a"), root.join(".lakebed-dropped-00")).unwrap();
        assert_eq!(catalog.load(&ident("default", "a")).await.unwrap_err().kind(), ErrorKind::NotFound);
        catalog.drop(&ident("default", "b")).await.unwrap();
        assert!(hidden(&root).is_empty(), "{:?}", hidden(&root));
    }

    #[tokio::test]
    async fn stores_that_cannot_rename_drop_nothing() {
        let mut config = Config::default();
        config.set("warehouse", "memory:///lakehouse".to_owned(), Origin::Flag("test")).unwrap();
        let lake = Lakebed::builder().config(config).format(Arc::new(Pond)).build().unwrap();
        let catalog = lake.catalog().as_ref();
        catalog.create_namespace(&["sales".to_owned()]).await.unwrap();
        catalog.create(&ident("sales", "t"), POND, one_column()).await.unwrap();
        let err = catalog.drop(&ident("sales", "t")).await.unwrap_err();
        assert_eq!(err.kind(), ErrorKind::Unsupported, "{err}");
        assert_eq!(catalog.load(&ident("sales", "t")).await.unwrap().format, FormatKind::new("pond"));
    }
}
