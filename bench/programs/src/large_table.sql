PRAGMA journal_mode = off;
CREATE TABLE things(id INTEGER PRIMARY KEY, what BLOB);
INSERT INTO things SELECT value, randomblob(1000) FROM generate_series(1, 450000);
