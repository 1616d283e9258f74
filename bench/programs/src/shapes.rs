//! Input that keeps rustc busy: generic iterator chains over hash maps.
use std::collections::{BTreeMap, HashMap};

fn histogram<const N: usize>(words: &[String]) -> BTreeMap<usize, Vec<String>> {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for word in words {
        *counts.entry(&word[..word.len().min(N)]).or_default() += 1;
    }
    let mut by_count: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    for (word, count) in counts {
        by_count.entry(count).or_default().push(word.to_uppercase());
    }
    by_count.values_mut().for_each(|list| list.sort_by_key(|word| std::cmp::Reverse(word.len())));
    by_count
}

fn main() {
    let words: Vec<String> = std::env::args().flat_map(|a| a.split('-').map(str::to_owned).collect::<Vec<_>>()).collect();
    println!("{:?}", (histogram::<1>(&words), histogram::<2>(&words), histogram::<3>(&words), histogram::<4>(&words),
        histogram::<5>(&words), histogram::<6>(&words), histogram::<7>(&words), histogram::<8>(&words)));
}
