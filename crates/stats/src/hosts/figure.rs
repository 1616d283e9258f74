//! What hosts are compared by.

/// A figure of every host.
#[derive(Clone, Debug)]
pub struct Figure {
    /// What it is.
    pub name: String,
    /// By host.
    pub values: Vec<f64>,
    /// Added before the logarithm is taken: below it, ratios mean little.
    pub least: f64,
    /// Whether it is a share of samples.
    pub is_share: bool,
}
