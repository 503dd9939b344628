SET lakebed.time_zone = 'Europe/Berlin'
SHOW lakebed.time_zone
SET TIME ZONE 'nowhere'
RESET lakebed.time_zone
SHOW lakebed.time_zone
SET lakebed.pond.depth = 7
SHOW lakebed.pond.depth
SET lakebed.scan.trust_statistics = true
SHOW lakebed.scan.trust_statistics
SET lakebed.scan.nothing = true
SET lakebed.tme_zone = 'UTC'
SET datafusion.execution.batch_size = 1024
SHOW datafusion.execution.batch_size
SET datafusion.execution.batch_sise = 1
SET datafusion.sql_parser.enable_ident_normalization = true
RESET ALL
SHOW lakebed.pond.depth
SHOW nothing
USE attic
SHOW TABLES
SELECT * FROM orders
SELECT count(*) AS n FROM main.orders
USE lake.MAIN
SELECT count(*) AS n FROM orders
USE nothing
USE loke.main
CREATE TEMPORARY VIEW Late AS SELECT * FROM orders WHERE id > 1
SELECT NAME FROM late ORDER BY LATE.id
SELECT l.id FROM LATE AS l ORDER BY 1
DESCRIBE late
CREATE TEMPORARY VIEW late AS SELECT 1
CREATE OR REPLACE TEMPORARY VIEW late AS SELECT id FROM late
SELECT * FROM late ORDER BY 1
CREATE OR REPLACE TEMPORARY VIEW late AS SELECT nothing FROM orders
SELECT * FROM late VERSION AS OF 1
DROP VIEW late
DROP VIEW late
DROP VIEW IF EXISTS late
CREATE VIEW v AS SELECT 1
INSERT INTO orders VALUES (9, 'x', 'd9')
DELETE FROM orders WHERE id IN (SELECT id FROM people)
DELETE FROM nowhere
UPDATE orders SET name = 'x'
MERGE INTO orders USING people ON orders.id = people.id WHEN MATCHED THEN DELETE
VACUUM orders RETAIN 0 HOURS
RESTORE TABLE orders TO VERSION AS OF 1
CALL sys.create_tag('orders', 'x')
COPY (SELECT 1) TO '/tmp/x.parquet' STORED AS PARQUET
CREATE EXTERNAL TABLE x STORED AS PARQUET LOCATION '/tmp/x.parquet'
SELECT * INTO copied FROM orders
SELECT 1; SELECT 2
SELECT 1 / 0
SELECT CAST('x' AS INT)
SELECT nothing(1)
