# Names keep their case and match without it.
SELECT id, NAME FROM Orders ORDER BY ID LIMIT 1
SELECT O.id FROM orders o ORDER BY o.ID LIMIT 1
SELECT orders.id FROM ORDERS ORDER BY 1 LIMIT 1
SELECT main.orders.id FROM main.orders ORDER BY 1 LIMIT 1
SELECT lake.MAIN.orders.ID FROM lake.main.orders ORDER BY 1 LIMIT 1
SELECT DAY, count(*) AS N FROM orders GROUP BY day ORDER BY n DESC
SELECT day AS Dag, count(*) FROM orders GROUP BY DAG HAVING COUNT(*) > 1
SELECT Id AS x FROM orders WHERE ID > 1 ORDER BY X DESC
SELECT max(id) OVER (PARTITION BY DAY ORDER BY ID) AS m FROM orders WINDOW w AS (ORDER BY iD) ORDER BY 1
SELECT id FROM orders QUALIFY row_number() OVER (PARTITION BY DAY ORDER BY ID) = 1 ORDER BY id
SELECT s.ID FROM (SELECT * FROM orders) s ORDER BY S.id LIMIT 1
WITH Big AS (SELECT ID AS Number FROM orders WHERE id > 1) SELECT b.NUMBER FROM BIG b ORDER BY number
WITH c(A, b) AS (SELECT id, name FROM orders) SELECT a, B FROM C ORDER BY a LIMIT 1
WITH orders AS (SELECT * FROM orders WHERE id = 1) SELECT count(*) AS n FROM ORDERS
WITH RECURSIVE r(N) AS (SELECT 1 UNION ALL SELECT n + 1 FROM R WHERE n < 3) SELECT max(N) AS m FROM r
SELECT a.NAME, p.NAME FROM orders a JOIN people p USING (iD) ORDER BY 1
SELECT p.id FROM people p NATURAL JOIN (SELECT id FROM people) q ORDER BY 1
SELECT * FROM people NATURAL JOIN orders
SELECT name FROM orders o WHERE EXISTS (SELECT 1 FROM people p WHERE P.ID = o.ID) ORDER BY o.Id
SELECT (SELECT max(NAME) FROM people WHERE ID = o.id) AS m FROM orders o ORDER BY o.id
SELECT x.v FROM people p, LATERAL (SELECT P.ID + 1 AS v) x ORDER BY 1
SELECT id FROM orders UNION SELECT ID FROM people ORDER BY ID
SELECT count(ID = 1) AS n, COUNT(DISTINCT Day) AS d FROM orders
SELECT * EXCLUDE (DAY, Name) FROM orders ORDER BY id LIMIT 1
SELECT * REPLACE (id + 10 AS ID) FROM people ORDER BY 1
SELECT o.* EXCEPT (name) FROM orders O ORDER BY id LIMIT 1
FROM orders SELECT * WHERE ID = 2
FROM people
SELECT ST.City, st.Inner.Zip FROM (SELECT named_struct('City', 'x', 'Inner', named_struct('Zip', 5)) AS St) q
SELECT ar[1].City FROM (SELECT make_array(named_struct('City', 'x')) AS Ar) q
# Two columns that differ by case only.
SELECT id, "ID" FROM "twins"
SELECT ID FROM "twins"
SELECT Id FROM "twins"
SELECT t.iD FROM "twins" t
SELECT count(*) AS n FROM twins
SELECT count(*) AS n FROM TWINS
SELECT * FROM orders o JOIN people p ON id = 1 ORDER BY o.Id
# Close by.
SELECT nmae FROM orders
SELECT o.nmae FROM orders o
SELECT * FROM oders
SELECT * FROM nowhere.orders
SELECT * FROM loke.main.orders
SELECT * FROM ponds('/lake/orders')
SELECT * FROM orders, orders
