//! Runs that begin as the observed one did: with the files that it waited for on disk, not in the
//! page cache.

use pagewise_model::findings::{Diagnosis, FileReads, Findings, Severity};
use pagewise_model::proof::Proof;
use std::path::PathBuf;

/// If runs have this many times fewer major faults than the observed one, they found their files in
/// memory.
const STAYED: u64 = 4;

/// The files that were waited for, if that is costly. Pages of programs and libraries are also
/// mapped by other processes and cannot be evicted.
#[must_use]
pub fn files(findings: &Findings) -> Vec<PathBuf> {
    waited_for(&findings.diagnoses, &findings.file_reads)
}

fn waited_for(diagnoses: &[Diagnosis], reads: &[FileReads]) -> Vec<PathBuf> {
    let costs = |one: &Diagnosis| one.id == "file.read" && one.severity > Severity::Note;
    if !diagnoses.iter().any(costs) {
        return Vec::new();
    }
    let read = reads.iter().filter(|file| !file.is_code);
    read.map(|file| PathBuf::from(&file.path)).collect()
}

/// A note for the reader of a proof whose runs should begin without `files` in memory.
#[must_use]
pub fn note(findings: &Findings, files: &[PathBuf], proof: &Proof) -> Option<String> {
    let runs = &proof.arms.first()?.runs;
    let mut faults: Vec<u64> = runs.iter().map(|run| run.major_faults).collect();
    faults.sort_unstable();
    let usual = *faults.get(faults.len() / 2)?;
    sentence(files, usual, findings.cost.major_faults)
}

fn sentence(files: &[PathBuf], faults_of_runs: u64, faults_observed: u64) -> Option<String> {
    let (first, more) = files.split_first()?;
    let named = match more.len() {
        0 => first.display().to_string(),
        1 => format!("{} and 1 more file", first.display()),
        others => format!("{} and {others} more files", first.display()),
    };
    let note = match faults_of_runs.saturating_mul(STAYED) < faults_observed {
        true => format!(
            "The runs found {named} in memory, unlike the observed run: the gain when it must be read from disk was not measured."
        ),
        false => format!("Each run started with {named} on disk, not in memory."),
    };
    Some(note)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagewise_model::units::Bytes;
    use std::path::Path;

    #[test]
    fn what_is_waited_for_is_cold() {
        let file = |path: &str, is_code| FileReads {
            path: path.to_owned(),
            is_code,
            mapped: Bytes(1 << 30),
            reads: 500,
            in_order: None,
        };
        let reads = [file("/data/a", false), file("/bin/program", true)];
        let of = |id: &str, severity| waited_for(&[Diagnosis::named(id, severity)], &reads);
        assert_eq!(of("file.read", Severity::Severe), [Path::new("/data/a")]);
        assert!(of("file.read", Severity::Note).is_empty());
        assert!(of("churn", Severity::Severe).is_empty());
    }

    #[test]
    fn runs_that_found_the_files_in_memory_are_told_so() {
        let files = ["/data/a", "/data/b"].map(PathBuf::from);
        let words = |runs, observed| sentence(&files, runs, observed).unwrap();
        let cold = "Each run started with /data/a and 1 more file on disk, not in memory.";
        assert_eq!(words(450, 500), cold);
        assert_eq!(words(125, 500), cold);
        assert!(words(124, 500).starts_with("The runs found /data/a and 1 more file in memory"));
        assert_eq!(sentence(&[], 450, 500), None);
    }
}
