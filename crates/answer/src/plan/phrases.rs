//! The sentences of `rules/phrases.toml`, each as a function that takes the values it may refer to.

use pagewise_rules::Template;
use pagewise_rules::{Content, Mistake, RuleFile, rule_file};
use serde::Deserialize;
use std::fmt::Display;
use std::sync::LazyLock;

macro_rules! phrases {
    ($($section:ident: $of:ident { $($name:ident($($value:ident),*);)* })*) => {
        #[derive(Debug, Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Phrases { $($section: $of),* }

        impl Content for Phrases {
            fn check(&self) -> Result<(), Mistake> {
                $($(self.$section.$name.check(&[$(stringify!($value)),*])?;)*)*
                Ok(())
            }
        }

        $(
            #[derive(Debug, Deserialize)]
            #[serde(deny_unknown_fields)]
            struct $of { $($name: Template),* }

            $(pub(super) fn $name($($value: impl Display),*) -> String {
                let values: &[(&str, String)] = &[$((stringify!($value), $value.to_string())),*];
                PHRASES.$section.$name.fill(values)
            })*
        )*
    };
}

const SHIPPED: RuleFile = rule_file!("phrases.toml");
static PHRASES: LazyLock<Phrases> = LazyLock::new(|| SHIPPED.shipped());

phrases! {
    evidence: Evidence {
        in_force(settings);
        adaptation_is_off();
        of_this_kind(faults, all, share);
        faults_take(share);
        calls_take(share);
        allocator_takes(share, functions);
        collector_takes(share, functions);
        zeroing_takes(share, functions);
        runtime_calls(runtime, function);
        memory_moves(faults, held);
        allocated_times(times);
        returned(times, mean, most);
        system_time(system, cpu, share);
        touched_again(function);
        lock_waits(waits, time);
        page_waits(share);
        major_faults(major, minor);
        who_waits(who);
        file_read(path, size, reads, order);
        file_reads(path, size, reads, order);
        in_order();
        partly_in_order();
        at_random();
        reclaim_time(time);
        reclaim_disagrees();
        limit_hits(times);
        refaults(pages);
        scanned(pages);
        swapped_out(pages);
        stalled(time);
        counted_reclaim(time, times);
        counted_thrashing(time, times);
        counted_swap(time, times);
        counted_disk(time, times);
        counted_copying(time, times);
        huge_held(size);
        huge_zeros(size, zeros);
        huge_fallback(failed, given);
        kernel_thread(name, time, share);
        faults_in(faults, cpu);
        faults_share(share);
        used(cpu, wall);
        open_cpu(share);
        open_elapsed(share);
        own_function(share, function);
        entry(share, entry);
        populating_waits(share);
        kernel_in_all(share);
        entry_within(share, entry, functions);
        unexplained(system, cpu, time, share);
        each_fork(forks, each);
        faults_of_forks(share);
        copying_tables(share);
        taking_down(share);
        largest_process(size);
        spinning(share);
        flushing(share);
        serving(share);
        registering(share);
        populating(size, held);
        each_program(number, time);
        each_thread(number, time);
        locking(share);
        asking(functions);
        queueing(share);
        unmapped(calls, bytes, held);
        balancing_takes(share);
        balancing_counted(counts);
        hinting_faults(faults);
        hinting_faults_local(faults);
        pages_moved(pages);
        process_on_nodes(name, pid, held, nodes, policy);
        on_node(node, memory, time);
        node_was_full(pages, node);
        remote_cost_unknown();
        next(next);
    }
    verdict: Verdict {
        cpu_time();
        elapsed_time();
        takes(headline, share, clock);
        as_much(others);
        one_as_much(headline, share, clock);
        takes_between(headline, low, high, clock);
        is(headline);
        settled_by_time();
        settled_by_samples();
        of_little(cpu);
        beside_waits(waiting, trouble);
        little(advice);
        and_advice(what, advice);
        nothing();
        nothing_from_faults();
        short(cpu, wall);
        short_waits(cpu, wall, kinds);
        short_waits_unseen(cpu, wall);
        waits(wall, kinds, cpu, next);
        waits_little_memory(wall, kinds, cpu, next);
        waits_next(who);
        kind(time, share, kind);
        kinds(kinds);
        and();
        computes(share, functions);
        spends(share, functions);
        functions(functions);
        function(function, share);
        beside(kinds);
        is_of_kernel(kinds);
        is_mostly_kernel(kinds, own, functions);
        part(share, kind);
        nothing_of_memory(what);
        nothing_of_faults(what);
        nothing_of_faults_trial(what, trial);
        sentence(what);
        waits_too(share, kinds);
        wants_a_cpu(share);
        one_at_a_time(cpus);
        not_told_of_cpu(share);
        not_told_of_elapsed(share);
        uncertain_of_cpu(share);
        uncertain_of_elapsed(share);
        not_seen(cpu, system, share);
        not_sampled();
        seen_elsewhere();
        seen_by_calls();
        not_the_allocators(share);
        not_the_allocators_at_all();
        by_hand();
        by_limit();
        by_hand_or_huge_pages();
        by_whom();
        by_cause();
        by_whom_trials(by_whom, trials);
        no_setting();
        fails_with(arms);
        trials(trials);
        by_hand_beside(trials);
        one_setting();
        two_settings();
        settings(count);
        predicted(settings, gain);
        beside_trials(advice, trials);
        not_predicted(settings);
        proved(settings, gain);
        proved_faster(settings);
        not_reached();
        with_arm(arm, gain);
        not_faster();
        refuted(names);
        once(arm, times);
        open();
        faster_measured(times, clock, low, high);
        faster_predicted(times, clock, low, high);
        faster_than_measured(times, clock);
        faster_than_predicted(times, clock);
    }
    advice: Advice {
        known(programs, gained, low, high);
        take_away(names);
        taken_away();
        taken_away_caveat();
        untried(name, version, tried);
        any_size();
        stretches();
        stretches_mostly(size);
        stretches_up_to(size);
    }
}
