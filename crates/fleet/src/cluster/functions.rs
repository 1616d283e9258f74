//! Functions that executors do not know.
//!
//! Executors of Ballista 55 decode plans by `BallistaFunctionRegistry::default()`, which lacks those of
//! DataFusion's functions that work on lists; the job fails there, and the reason stays in their logs.

use ballista_core::registry::BallistaFunctionRegistry;
use datafusion::common::Result;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::physical_expr::ScalarFunctionExpr;
use datafusion::physical_plan::ExecutionPlan;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The names of such functions in a plan.
pub fn unknown(plan: &Arc<dyn ExecutionPlan>) -> Result<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    add(plan, &BallistaFunctionRegistry::default(), &mut found)?;
    Ok(found)
}

fn add(
    plan: &Arc<dyn ExecutionPlan>,
    known: &BallistaFunctionRegistry,
    found: &mut BTreeSet<String>,
) -> Result<()> {
    plan.apply_expressions(&mut |root| {
        root.apply(|expression| {
            let call = expression.downcast_ref::<ScalarFunctionExpr>();
            let name = call.map(|call| call.fun().name());
            if let Some(name) = name.filter(|&name| !known.scalar_functions.contains_key(name)) {
                found.insert(name.to_owned());
            }
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    for child in plan.children() {
        add(child, known, found)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::prelude::SessionContext;

    #[tokio::test]
    async fn functions_on_lists_are_not_known_to_executors() {
        let context = SessionContext::new();
        let table =
            "(SELECT make_array(column1, 2) AS list, column1 AS number FROM (VALUES (1), (2)))";
        for (sql, expected) in [
            ("SELECT abs(number) FROM", vec![]),
            (
                "SELECT abs(list[1]) FROM",
                vec!["array_element", "make_array"],
            ),
        ] {
            let plan = context.sql(&format!("{sql} {table}")).await.unwrap();
            let plan = plan.create_physical_plan().await.unwrap();
            let found = unknown(&plan).unwrap();
            assert_eq!(found.into_iter().collect::<Vec<_>>(), expected, "{sql}");
        }
    }
}
