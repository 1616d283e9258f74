//! Real traces for tests. Cut ones are in the repository and always available; whole ones are added
//! if `PAGEWISE_TRACES` names their folder. Both have the same layout.

use std::path::{Path, PathBuf};

/// A folder of traces.
pub struct Traces {
    folder: PathBuf,
    /// Whether they are whole, and not the repository's cuts.
    pub whole: bool,
}

/// The repository's traces, and those that the environment names.
pub fn all() -> Vec<Traces> {
    let cuts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/traces");
    let given = std::env::var_os("PAGEWISE_TRACES").map(PathBuf::from);
    let cuts = Traces {
        folder: cuts,
        whole: false,
    };
    let given = given.map(|folder| Traces {
        folder,
        whole: true,
    });
    [cuts].into_iter().chain(given).collect()
}

impl Traces {
    /// The folder.
    #[allow(dead_code, reason = "each test file includes this and uses a part")]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// A file by its name among the whole ones; the cuts are all packed.
    #[allow(dead_code, reason = "each test file includes this and uses a part")]
    pub fn file(&self, name: &str) -> PathBuf {
        let plain = self.folder.join(name);
        match plain.exists() {
            true => plain,
            false => self.folder.join(format!("{name}.zst")),
        }
    }

    /// The first where the traces are whole, else the second.
    #[allow(dead_code, reason = "each test file includes this and uses a part")]
    pub fn expect<T>(&self, of_whole: T, of_cut: T) -> T {
        match self.whole {
            true => of_whole,
            false => of_cut,
        }
    }
}
