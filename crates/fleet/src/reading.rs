//! What queries may do.

use datafusion::prelude::SQLOptions;

/// Queries that read: none that makes, changes or writes anything.
pub fn reading() -> SQLOptions {
    SQLOptions::new()
        .with_allow_ddl(false)
        .with_allow_dml(false)
        .with_allow_statements(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::prelude::SessionContext;

    #[test]
    fn sql_reads_and_writes_nothing() {
        let context = SessionContext::new();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let ask = |sql: &str| runtime.block_on(context.sql_with_options(sql, reading()));
        assert!(ask("SELECT 1").is_ok() && ask("EXPLAIN SELECT 1").is_ok());
        for sql in [
            "CREATE TABLE x AS SELECT 1",
            "DROP TABLE IF EXISTS runs",
            "COPY (SELECT 1) TO 'x.csv'",
            "CREATE EXTERNAL TABLE x STORED AS CSV LOCATION '/etc/passwd'",
            "SET datafusion.execution.batch_size = 1",
            "SELECT 1; SELECT 2",
        ] {
            assert!(ask(sql).is_err(), "{sql}");
        }
    }
}
