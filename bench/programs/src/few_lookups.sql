-- A few random lookups through a mapping of the file.
PRAGMA mmap_size = 1000000000;
WITH RECURSIVE place(n, x) AS (VALUES (1, 12345) UNION ALL SELECT n + 1, (x * 1103515245 + 12345) % 2147483648 FROM place WHERE n < 3000)
SELECT sum(length(what)) FROM place JOIN things ON id = 1 + x / 7 % 450000;
