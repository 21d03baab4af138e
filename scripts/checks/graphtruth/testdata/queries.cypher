// all names
MATCH (p:Person) RETURN p.name AS name ORDER BY name

// a filter and an order
MATCH (p:Person) WHERE p.age > 30 AND p.age <= 45 RETURN p.name AS name, p.age AS age ORDER BY age DESC, name

// text operators
MATCH (p:Person) WHERE p.name STARTS WITH 'person 1' OR p.name ENDS WITH '9' OR p.name CONTAINS '44' RETURN p.name AS name

// negation and null
MATCH (p:Person) WHERE NOT p.age < 60 AND p.nick IS NOT NULL RETURN p.name AS name, p.nick AS nick

// missing properties
MATCH (p:Person) WHERE p.nick IS NULL RETURN count(*) AS n

// counts by group
MATCH (p:Person)-[:LIVES_IN]->(c:City) RETURN c.name AS city, count(*) AS n ORDER BY n DESC, city

// aggregates
MATCH (p:Person)-[:LIVES_IN]->(c:City) RETURN c.name AS city, min(p.age) AS least, max(p.age) AS most, avg(p.age) AS mean, sum(p.score) AS total

// distinct counts
MATCH (p:Person)-[:KNOWS]->(q:Person) RETURN count(DISTINCT q.name) AS n

// distinct rows
MATCH (p:Person)-[:KNOWS]->(q:Person)-[:LIVES_IN]->(c:City) RETURN DISTINCT c.name AS city

// two hops
MATCH (a:Person {id: 'p1'})-[:KNOWS]->(b:Person)-[:KNOWS]->(c:Person) RETURN b.name AS b, c.name AS c

// a hop backwards
MATCH (a:Person {id: 'p3'})<-[:KNOWS]-(b:Person) RETURN b.name AS name

// in either direction
MATCH (a:Person {id: 'p5'})-[:KNOWS]-(b:Person) RETURN b.name AS name

// properties of relationships
MATCH (a:Person)-[k:KNOWS]->(b:Person) WHERE k.since >= 2015 RETURN a.name AS a, b.name AS b, k.since AS since

// a path of variable length
MATCH (a:Person {id: 'p40'})-[:REPORTS_TO*1..6]->(b:Person) RETURN b.name AS name

// a path of exact length
MATCH (a:Person)-[:REPORTS_TO*3..3]->(b:Person) RETURN a.name AS a, b.name AS b

// those reached, counted
MATCH (a:Person)-[:REPORTS_TO*1..10]->(b:Person {id: 'p0'}) RETURN count(a) AS n

// optional patterns
MATCH (p:Person) WHERE p.age < 25 OPTIONAL MATCH (p)-[w:WORKS_AT]->(o:Company) RETURN p.name AS name, o.name AS company, w.role AS role

// optional counts
MATCH (p:Person) OPTIONAL MATCH (p)-[:REPORTS_TO]->(m:Person) RETURN count(m) AS led, count(*) AS total

// with and having
MATCH (c:Company)<-[:WORKS_AT]-(p:Person) WITH c, count(p) AS staff WHERE staff > 5 RETURN c.name AS company, staff

// with, order and limit
MATCH (p:Person) WITH p ORDER BY p.age DESC, p.name LIMIT 5 RETURN p.name AS name, p.age AS age

// skip and limit
MATCH (p:Person) RETURN p.name AS name ORDER BY p.age, name SKIP 10 LIMIT 10

// lists
MATCH (c:City)<-[:LIVES_IN]-(p:Person) WHERE p.age > 55 RETURN c.name AS city, collect(p.name) AS names

// unwind
UNWIND [3, 1, 2, 3] AS x RETURN x, x * 10 AS y ORDER BY x

// unwind a parameter
UNWIND $ids AS id MATCH (p:Person {id: id}) RETURN p.name AS name

// parameters
MATCH (p:Person) WHERE p.age = $age RETURN p.name AS name

// membership
MATCH (p:Person) WHERE p.age IN [20, 30, 40] RETURN p.name AS name, p.age AS age

// case
MATCH (p:Person) RETURN CASE WHEN p.age < 30 THEN 'young' WHEN p.age < 60 THEN 'middle' ELSE 'old' END AS class, count(*) AS n

// coalesce
MATCH (p:Person) WHERE p.age > 50 RETURN p.name AS name, coalesce(p.nick, 'none') AS nick

// functions of text
MATCH (p:Person) WHERE p.id = 'p12' RETURN toUpper(p.name) AS up, size(p.name) AS length, reverse(p.id) AS back

// arithmetic
MATCH (p:Person) WHERE p.age % 7 = 0 RETURN p.name AS name, p.age / 2 AS half, p.score * 2 + 1 AS more, abs(p.age - 40) AS away

// regular expressions
MATCH (p:Person) WHERE p.name =~ 'person [0-9]?8' RETURN p.name AS name

// existential subqueries
MATCH (p:Person) WHERE EXISTS { MATCH (p)-[:WORKS_AT]->(:Company) } RETURN count(p) AS n

// not connected
MATCH (p:Person) WHERE NOT EXISTS { MATCH (p)-[:KNOWS]->(:Person) } RETURN p.name AS name

// union
MATCH (c:City) RETURN c.name AS name UNION MATCH (c:Company) RETURN c.name AS name

// union with duplicates
MATCH (p:Person) WHERE p.age = 33 RETURN p.name AS name UNION ALL MATCH (p:Person) WHERE p.age > 32 AND p.age < 34 RETURN p.name AS name

// triangles
MATCH (a:Person)-[:KNOWS]->(b:Person)-[:KNOWS]->(c:Person), (a)-[:KNOWS]->(c) RETURN a.name AS a, b.name AS b, c.name AS c

// several patterns
MATCH (p:Person)-[:WORKS_AT]->(o:Company), (p)-[:LIVES_IN]->(c:City), (o)-[:BASED_IN]->(c) RETURN p.name AS name, o.name AS company, c.name AS city

// colleagues
MATCH (a:Person {id: 'p10'})-[:WORKS_AT]->(o:Company)<-[:WORKS_AT]-(b:Person) WHERE a.id <> b.id RETURN b.name AS name

// nested aggregation
MATCH (p:Person)-[:LIVES_IN]->(c:City) WITH c.name AS city, count(*) AS n RETURN max(n) AS most, min(n) AS least, sum(n) AS total
