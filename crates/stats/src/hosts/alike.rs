//! Which hosts are set against each other: those that share all keys, such as role, kernel and CPU; where
//! these are few, those that share all keys but the last ones.

use std::collections::BTreeMap;

/// Fewest hosts that are a group: the others must have a middle half.
pub const LEAST_HOSTS: usize = 5;
/// A group of so many hosts needs no wider one.
const ENOUGH_HOSTS: usize = 8;
/// Fewest hosts that show what a value of a key does.
const LEAST_OF_VALUE: usize = 4;
/// Fewest hosts of a group with this value, so that what it does to this group's hosts alone is seen.
const LEAST_IN_GROUP: usize = 2;

/// Hosts that are alike.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Group {
    /// All of them.
    pub hosts: Vec<usize>,
    /// Those that are judged here; the others are judged in a closer group.
    pub judged: Vec<usize>,
    /// Of how many keys, from the last, they may have different values.
    pub free: usize,
}

/// All hosts by what they are alike in.
#[derive(Clone, Debug, Default)]
pub struct Alike {
    /// Each host is judged in one group at most.
    pub groups: Vec<Group>,
    /// By key: the number of each host's value.
    values: Vec<Vec<usize>>,
}

impl Alike {
    /// By the keys of each host, which all have the same number of them: the most important first.
    pub fn new(keys: &[Vec<String>]) -> Self {
        let all = keys.first().map_or(0, Vec::len);
        let values = (0..all).map(|key| numbered(keys.iter().map(|keys| &keys[key])));
        let mut alike = Self {
            groups: Vec::new(),
            values: values.collect(),
        };
        let mut is_judged = vec![false; keys.len()];
        for least in [ENOUGH_HOSTS, LEAST_HOSTS] {
            for free in 0..all.max(1) {
                for group in alike.groups_of(keys, free, least, &is_judged) {
                    for &host in &group.judged {
                        is_judged[host] = true;
                    }
                    alike.groups.push(group);
                }
            }
        }
        alike
    }

    fn groups_of(
        &self,
        keys: &[Vec<String>],
        free: usize,
        least: usize,
        is_judged: &[bool],
    ) -> Vec<Group> {
        let mut groups: BTreeMap<&[String], Vec<usize>> = BTreeMap::new();
        for (host, keys) in keys.iter().enumerate() {
            let same = keys.len() - free.min(keys.len());
            groups.entry(&keys[..same]).or_default().push(host);
        }
        let free_keys = self.free_keys(free);
        let shared_by = |host: usize, among: &mut dyn Iterator<Item = usize>, least: usize| {
            let mut counts = vec![0; free_keys.len()];
            for other in among {
                for (count, values) in counts.iter_mut().zip(free_keys) {
                    *count += usize::from(values[other] == values[host]);
                }
            }
            counts.into_iter().all(|count| count >= least)
        };
        let groups = groups.into_values().map(|hosts| {
            let is_known = |host: usize| {
                shared_by(host, &mut (0..keys.len()), LEAST_OF_VALUE)
                    && shared_by(host, &mut hosts.iter().copied(), LEAST_IN_GROUP)
            };
            let known = hosts.iter().copied().filter(|&host| is_known(host));
            let known: Vec<usize> = known.collect();
            let judged = known.iter().copied().filter(|&host| !is_judged[host]);
            Group {
                judged: judged.collect(),
                hosts: known,
                free,
            }
        });
        groups
            .filter(|group| group.hosts.len() >= least && !group.judged.is_empty())
            .collect()
    }

    /// The values of the last keys, by host.
    pub fn free_keys(&self, free: usize) -> &[Vec<usize>] {
        &self.values[self.values.len().saturating_sub(free)..]
    }

    /// How many hosts there are, judged or not.
    pub fn hosts(&self) -> usize {
        self.values.first().map_or(0, Vec::len)
    }
}

fn numbered<'a>(texts: impl Iterator<Item = &'a String>) -> Vec<usize> {
    let mut numbers: BTreeMap<&String, usize> = BTreeMap::new();
    texts
        .map(|text| {
            let next = numbers.len();
            *numbers.entry(text).or_insert(next)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(of: &[(&str, &str, usize)]) -> Vec<Vec<String>> {
        of.iter()
            .flat_map(|&(role, kernel, hosts)| {
                vec![vec![role.to_owned(), kernel.to_owned()]; hosts]
            })
            .collect()
    }

    #[test]
    fn few_hosts_of_one_kernel_are_alike_to_their_role() {
        let alike = Alike::new(&keys(&[
            ("web", "6.1", 9),
            ("web", "6.12", 4),
            ("db", "6.1", 3),
        ]));
        assert_eq!(alike.groups.len(), 2);
        let [close, wide] = &*alike.groups else {
            panic!("two groups")
        };
        assert_eq!((close.free, close.judged.len()), (0, 9));
        assert_eq!((wide.free, wide.hosts.len()), (1, 13));
        assert_eq!(wide.judged, [9, 10, 11, 12]);
    }

    #[test]
    fn a_kernel_of_two_hosts_is_set_against_nothing() {
        let alike = Alike::new(&keys(&[("web", "6.1", 9), ("web", "6.12", 2)]));
        assert_eq!(alike.groups.len(), 1);
        assert_eq!(alike.groups[0].judged, (0..9).collect::<Vec<_>>());
        assert!(Alike::new(&keys(&[("web", "6.1", 4)])).groups.is_empty());
    }

    #[test]
    fn six_hosts_that_share_all_are_a_group_if_nothing_is_wider() {
        let alike = Alike::new(&keys(&[("web", "6.1", 6)]));
        assert_eq!(alike.groups.len(), 1);
        assert_eq!((alike.groups[0].free, alike.groups[0].hosts.len()), (0, 6));
    }
}
