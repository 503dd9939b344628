# Not in *.
SELECT * FROM orders ORDER BY id LIMIT 1
SELECT *, _size > 0 AS sized FROM orders ORDER BY id LIMIT 1
SELECT o.*, _row_index FROM orders o ORDER BY id
SELECT * FROM orders WHERE _file LIKE '%.parquet' ORDER BY ID LIMIT 1
SELECT * FROM orders ORDER BY _path, _ROW_INDEX LIMIT 1
FROM orders SELECT * WHERE _size > 0 ORDER BY id LIMIT 1
SELECT count(*) AS n FROM orders WHERE _row_index = 0
SELECT * FROM (SELECT * FROM orders WHERE _row_index = 0) ORDER BY id
SELECT s.at FROM (SELECT _row_index AS at, id FROM orders) s ORDER BY id
WITH c AS (SELECT *, _row_index FROM orders) SELECT * FROM c ORDER BY id LIMIT 1
SELECT * FROM orders a JOIN people b ON a.id = b.id AND a._row_index = b._row_index
SELECT * EXCLUDE (day) FROM orders WHERE _row_index = 0 ORDER BY id
SELECT a.*, b._row_index FROM people a JOIN people b USING (id) ORDER BY id
SELECT * FROM people a JOIN people b USING (id) WHERE a._row_index = b._row_index
SELECT * FROM people a JOIN people b USING (id) WHERE a._row_index = 0
SELECT * FROM people a NATURAL JOIN people b WHERE a._row_index = 0 AND b._row_index = 0
SELECT count(DISTINCT _path) AS files FROM orders
SELECT _path = concat('/lake/', 'x') AS same, _file IS NULL AS none, _time IS NULL AS timeless FROM orders LIMIT 1
SELECT id FROM orders UNION ALL SELECT _row_index FROM people ORDER BY 1
SELECT * FROM orders a LEFT SEMI JOIN people b ON a.id = b.id AND b._row_index >= 0 ORDER BY id
# Not there.
SELECT * EXCLUDE (_path) FROM orders
SELECT _paths FROM orders
SELECT _row_index FROM orders a JOIN people b ON a.id = b.id
DESCRIBE orders
