//! Settings as lines for a shell.

use pagewise_model::advice::{Setting, Settings};

/// Labelled texts to copy; empty when there is nothing to set.
#[must_use]
pub fn exports(settings: &Settings) -> Vec<(String, String)> {
    let mut lines = Vec::new();
    let tunables: Vec<String> = settings.0.iter().filter_map(tunable).collect();
    if !tunables.is_empty() {
        lines.push(format!("export GLIBC_TUNABLES={}", tunables.join(":")));
    }
    for setting in &settings.0 {
        match setting {
            Setting::Env { name, value } => lines.push(format!("export {name}='{value}'")),
            Setting::Preload { path } => lines.push(format!("export LD_PRELOAD='{path}'")),
            Setting::GlibcTunable { .. } | Setting::Thp { .. } => {}
        }
    }
    if lines.is_empty() {
        return Vec::new();
    }
    vec![("Shell".to_owned(), lines.join("\n"))]
}

fn tunable(setting: &Setting) -> Option<String> {
    match setting {
        Setting::GlibcTunable { name, value } => Some(format!("{name}={value}")),
        _ => None,
    }
}
