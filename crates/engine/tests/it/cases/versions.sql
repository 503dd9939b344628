SELECT count(*) AS n FROM orders
SELECT count(*) AS n FROM orders VERSION AS OF 1
SELECT count(*) AS n FROM orders VERSION AS OF '1'
SELECT count(*) AS n FROM orders VERSION AS OF 'release'
SELECT count(*) AS n FROM orders VERSION AS OF (2 - 1)
SELECT count(*) AS n FROM orders FOR VERSION AS OF 1 AS o
SELECT count(*) AS n FROM orders FOR SYSTEM_VERSION AS OF 1
SELECT count(*) AS n FROM orders AT (VERSION => 1)
SELECT count(*) AS n FROM orders AT (TAG => 'release')
SELECT count(*) AS n FROM orders@v1
SELECT count(*) AS n FROM orders@1
SELECT count(*) AS n FROM orders@release
SELECT count(*) AS n FROM main."orders@release"
SELECT count(*) AS n FROM lake.main."orders@v1" o
SELECT count(*) AS n FROM orders /*+ OPTIONS('versionAsOf'='1') */
SELECT count(*) AS n FROM orders TIMESTAMP AS OF '2100-01-01'
SELECT count(*) AS n FROM orders TIMESTAMP AS OF TIMESTAMP '2100-01-01 00:00:00'
SELECT count(*) AS n FROM orders FOR SYSTEM_TIME AS OF DATE '2100-01-01'
SELECT count(*) AS n FROM orders FOR TIMESTAMP AS OF now() + INTERVAL '1 hour'
SELECT count(*) AS n FROM orders AT (TIMESTAMP => '2100-01-01T00:00:00Z')
SELECT count(*) AS n FROM "orders@{2100-01-01}"
SELECT count(*) AS n FROM '/lake/orders'
SELECT count(*) AS n FROM '/lake/orders@v1'
SELECT count(*) AS n FROM pond.`/lake/orders`
SELECT count(*) AS n FROM pond."/lake/orders@1"
SELECT count(*) AS n FROM pond('/lake/orders')
SELECT count(*) AS n FROM pond('/lake/orders', version => 1)
SELECT count(*) AS n FROM pond('/lake/orders', version := 1)
SELECT count(*) AS n FROM pond('/lake/orders', version = 1)
SELECT count(*) AS n FROM pond('/lake/orders', ref => 'release')
SELECT count(*) AS n FROM pond('/lake/orders', timestamp => '2100-01-01T00:00:00Z')
SELECT count(*) AS n FROM TABLE(pond('/lake/orders', version => 1))
# Two versions of one table are two relations.
SELECT a.Id FROM orders AS a LEFT JOIN orders VERSION AS OF 1 AS b ON a.Id = b.Id WHERE b.Id IS NULL
SELECT 1 FROM orders@1 JOIN orders@2 ON true
SELECT count(*) AS n FROM (SELECT * FROM orders EXCEPT SELECT * FROM orders@v1)
# A name that holds `@` is a name first.
SELECT count(*) AS n FROM "odd@name"
SELECT count(*) AS n FROM '/lake/odd@name'
# What cannot be.
SELECT * FROM orders VERSION AS OF 99
SELECT * FROM orders VERSION AS OF 'nothing'
SELECT * FROM orders VERSION AS OF 1.5
SELECT * FROM orders VERSION AS OF NULL
SELECT * FROM orders TIMESTAMP AS OF 'not a time'
SELECT * FROM orders TIMESTAMP AS OF '1970-01-01'
SELECT * FROM orders TIMESTAMP AS OF 5
SELECT * FROM orders@v1 VERSION AS OF 1
SELECT * FROM orders AT (SNAPSHOT => 1)
SELECT * FROM orders /*+ OPTIONS('scan.snapshot-id'='1') */
SELECT * FROM orders SETTINGS iceberg_snapshot_id = 1
SELECT * FROM pond('/lake/orders', version => 1, ref => 'release')
SELECT * FROM pond('/lake/orders', versoin => 1)
WITH c AS (SELECT 1) SELECT * FROM c VERSION AS OF 1
