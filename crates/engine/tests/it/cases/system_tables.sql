SELECT id, operation, files_added, refs, readable FROM orders$history
SELECT id FROM "orders$history" VERSION AS OF 1
SELECT id FROM orders@v1$history
SELECT id FROM "orders$history@v1"
SELECT ID FROM main.orders.history ORDER BY id
SELECT count(*) AS n, sum(rows) AS r FROM orders$files
SELECT count(*) AS n FROM orders$files VERSION AS OF 1
SELECT partition, rows, format, deletes, added_in FROM "orders$files" ORDER BY partition
SELECT rows, format, rows AS again FROM orders$files WHERE partition LIKE '%d2%'
SELECT name, kind, version FROM orders$refs
SELECT * FROM orders$refs@v1
SELECT partition, files, rows FROM orders$partitions
SELECT partition, files, rows FROM people$partitions
SELECT count(*) >= 0 AS ok FROM orders$properties
SELECT action, kind, state, id FROM orders$timeline
SELECT version, operation FROM orders$entries
SELECT count(*) AS n FROM '/lake/orders$files'
SELECT count(*) AS n FROM pond.`/lake/orders$files`
DESCRIBE HISTORY nowhere
SELECT column_name FROM information_schema.columns WHERE table_name = 'orders'
SELECT table_name FROM information_schema.tables ORDER BY table_name
SELECT * FROM information_schema.schemata ORDER BY schema_name
SELECT * FROM information_schema.tabels
SELECT * FROM orders$nothing
SHOW TABLES
SHOW TABLES IN Main LIKE 'o%'
SHOW SCHEMAS
SHOW CATALOGS
SHOW PARTITIONS orders
SHOW REFS orders
SHOW FUNCTIONS LIKE 'pond%'
DESCRIBE orders
DESCRIBE pond('/lake/orders')
DESCRIBE orders$refs
DESCRIBE SELECT id, 1 AS one FROM orders
SELECT name, value FROM orders$detail WHERE name IN ('format', 'version', 'files', 'rows', 'partition_columns')
SHOW CREATE TABLE orders
SHOW CREATE TABLE orders FORMAT vertical
