//! The text of each symptom: data, `rules/diagnoses.toml`.

use super::case::Owner;
use super::phrases;
use super::symptom::Symptom;
use super::writers::Writer;
use pagewise_model::findings::{Diagnosis, Severity};
use pagewise_rules::Template;
use pagewise_rules::{Content, Mistake, RuleFile, rule_file};
use serde::Deserialize;
use std::sync::LazyLock;

/// The contents of the file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Diagnoses {
    diagnosis: Vec<Words>,
}

/// The text about a symptom.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Words {
    symptom: Symptom,
    when: Option<When>,
    /// One sentence.
    pub headline: Template,
    /// Explanation for a reader without background knowledge.
    pub explanation: Template,
    /// How to find out more.
    pub next: Option<Template>,
}

/// The condition that selects between texts for one symptom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum When {
    /// A language runtime makes the calls.
    Runtime,
    /// The C library does, for stacks of threads.
    Threads,
    /// An allocator inside the program or a library does.
    Bundled,
    /// The allocator does, by thresholds that the program sets.
    Fixed,
    /// The program does, by `malloc_trim`.
    Trimmed,
    /// The program does.
    Program,
    /// Probably an allocator or a runtime does.
    Presumed,
    /// The caller is unknown.
    Unknown,
    /// CPU time was not sampled.
    NotSampled,
    /// The program forked.
    Forked,
    /// The collector of forked processes writes to what they share.
    Collector,
    /// Their reference counts do.
    ReferenceCounts,
    /// One of both.
    Either,
    /// What privileges show was seen.
    Privileged,
    /// The effect of page sizes was not measured, or would help.
    PageSizes,
    /// Most of it is work on files.
    Files,
    /// Work on files is more than this.
    BesideFiles,
}

impl When {
    pub fn from_owner(owner: Owner) -> Option<Self> {
        match owner {
            Owner::Allocator => None,
            Owner::Fixed => Some(Self::Fixed),
            Owner::Trimmed => Some(Self::Trimmed),
            Owner::Presumed => Some(Self::Presumed),
            Owner::Runtime(_) => Some(Self::Runtime),
            Owner::Threads => Some(Self::Threads),
            Owner::Bundled(_) => Some(Self::Bundled),
            Owner::Program => Some(Self::Program),
            Owner::Unknown => Some(Self::Unknown),
        }
    }
}

impl From<Writer> for When {
    fn from(writer: Writer) -> Self {
        match writer {
            Writer::Collector => Self::Collector,
            Writer::ReferenceCounts => Self::ReferenceCounts,
            Writer::Either => Self::Either,
        }
    }
}

const SHIPPED: RuleFile = rule_file!("diagnoses.toml");
static DIAGNOSES: LazyLock<Diagnoses> = LazyLock::new(|| SHIPPED.shipped());

/// The text for a symptom: the one for this condition, otherwise the general one.
pub(super) fn words(symptom: Symptom, when: Option<When>) -> &'static Words {
    let found = DIAGNOSES.find(symptom, when);
    found
        .or_else(|| DIAGNOSES.find(symptom, None))
        .unwrap_or_else(|| unreachable!("the file's check misses no symptom"))
}

impl Diagnoses {
    fn find(&self, symptom: Symptom, when: Option<When>) -> Option<&Words> {
        let mut all = self.diagnosis.iter();
        all.find(|one| one.symptom == symptom && one.when == when)
    }
}

impl Content for Diagnoses {
    fn check(&self) -> Result<(), Mistake> {
        for words in &self.diagnosis {
            words.check()?;
            let like = |one: &&Words| one.symptom == words.symptom && one.when == words.when;
            if self.diagnosis.iter().filter(like).count() > 1 {
                let id = words.symptom.id();
                return Err(words
                    .headline
                    .mistake(format!("words for {id} twice, expected a different 'when'")));
            }
        }
        let mut all = Symptom::ALL.iter();
        match all.find(|symptom| self.find(**symptom, None).is_none()) {
            None => Ok(()),
            Some(missing) => Err(Mistake {
                at: 0,
                what: format!(
                    "no words for {}, expected some without 'when'",
                    missing.id()
                ),
            }),
        }
    }
}

impl Words {
    /// This text as a finding, with its figures; how to find out more comes last.
    pub fn found(
        &self,
        severity: Severity,
        values: &[(&str, String)],
        evidence: Vec<String>,
    ) -> Diagnosis {
        let next = self
            .next
            .as_ref()
            .map(|next| phrases::next(next.fill(values)));
        Diagnosis {
            id: self.symptom.id().to_owned(),
            severity,
            headline: self.headline.fill(values),
            explanation: self.explanation.fill(values),
            evidence: evidence.into_iter().chain(next).collect(),
            share_of_cpu: None,
            share_of_elapsed: None,
        }
    }

    fn check(&self) -> Result<(), Mistake> {
        let given = values(self.symptom);
        let texts = [&self.headline, &self.explanation];
        let mut texts = texts.into_iter().chain(&self.next);
        texts.try_for_each(|text| text.check(given))
    }
}

/// Values that the text of a symptom may refer to.
fn values(symptom: Symptom) -> &'static [&'static str] {
    match symptom {
        Symptom::KernelWork => &["entry", "who"],
        Symptom::Computing => &["share", "who"],
        Symptom::Open | Symptom::UnknownFaults | Symptom::LockQueue => &["who"],
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagewise_rules::read;

    #[test]
    fn each_symptom_has_words_and_each_name_is_a_symptoms() {
        for symptom in Symptom::ALL {
            assert_eq!(Symptom::named(symptom.id()), Some(*symptom));
            let message = words(*symptom, None);
            assert!(message.headline.names().count() <= 1, "{}", symptom.id());
        }
        assert_eq!(Symptom::named("file.never"), None);
    }

    fn refused(change: impl Fn(&str) -> String) -> String {
        let read = read::<Diagnoses>("diagnoses.toml", &change(SHIPPED.text));
        read.expect_err("a mistake").to_string()
    }

    #[test]
    fn a_symptom_without_words_or_with_twice_as_many_is_refused() {
        let without = refused(|text| text.replace("\"swap\"", "\"file\""));
        assert!(without.contains("words for file twice"), "{without}");
        let other = refused(|text| {
            text.replace(
                "symptom = \"swap\"\n",
                "symptom = \"swap\"\nwhen = \"program\"\n",
            )
        });
        assert!(other.contains("no words for swap"), "{other}");
        let unknown = refused(|text| text.replace("\"swap\"", "\"swop\""));
        assert!(unknown.contains("unknown variant `swop`"), "{unknown}");
        let value = refused(|text| text.replace("Memory was swapped", "{who} was swapped"));
        assert!(value.contains("unknown value {who}"), "{value}");
    }
}
