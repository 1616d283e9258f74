//! Time off the CPU is distinguished from work by the frames of the scheduler, whether or not
//! another task is seen to run meanwhile; and from interrupts, which preempt tasks.

use pagewise_formats::function_graph::{CallTree, Names, OffCpu, Wait, read_bytes};

/// `seconds.micros cpu duration depth call`, one per line, as printed by the kernel.
fn trace(lines: &[(&str, u32, &str, usize, &str)]) -> String {
    let line = |&(time, cpu, span, depth, call): &(&str, u32, &str, usize, &str)| {
        let us = if span.is_empty() { "   " } else { " us" };
        format!(
            "   {time} | {cpu:3})   wl-7    | {span:>9}{us} |  {:1$}{call}\n",
            "",
            2 * depth
        )
    };
    lines.iter().map(line).collect()
}

fn fault(text: &str) -> (CallTree, Names) {
    let mut found = Vec::new();
    let mut sink = |tree: &CallTree, names: &Names| found.push((tree.clone(), names.clone()));
    let summary = read_bytes(text.as_bytes(), &mut sink);
    assert_eq!(summary.counts.unknown_lines, 0, "{text}");
    assert!(summary.incomplete.is_empty(), "{:?}", summary.incomplete);
    assert_eq!(found.len(), 1, "{text}");
    found.remove(0)
}

/// Where a task was off the CPU: the function, for how long, why.
fn waits(text: &str) -> Vec<(String, u64, Wait)> {
    let (tree, names) = fault(text);
    let name = |off: &OffCpu| names.text(tree.nodes[off.node as usize].name()).to_owned();
    let waits = tree.off_cpu.iter();
    waits.map(|off| (name(off), off.ns, off.wait)).collect()
}

/// As in a trace of 6.1: the next task calls nothing that is traced, so no line shows it.
#[test]
fn a_preemption_is_seen_though_the_next_task_calls_nothing() {
    let text = trace(&[
        ("18.001600", 0, "", 0, "handle_mm_fault() {"),
        ("18.001607", 0, "", 1, "__cond_resched() {"),
        ("18.001608", 0, "0.715", 2, "rcu_note_context_switch();"),
        ("18.001612", 0, "18.730", 2, "pick_next_task_fair();"),
        ("18.001636", 0, "1.063", 2, "__traceiter_sched_switch();"),
        ("18.001637", 0, "0.695", 2, "switch_mm_irqs_off();"),
        ("18.001639", 0, "2.039", 2, "save_fpregs_to_fpstate();"),
        ("18.015782", 0, "2.048", 2, "finish_task_switch.isra.0();"),
        ("18.015784", 0, "14177.22", 1, "} /* __cond_resched */"),
        ("18.015835", 0, "14235.55", 0, "} /* handle_mm_fault */"),
    ]);
    let away = ("__cond_resched".to_owned(), 14_140_961, Wait::Runnable);
    assert_eq!(waits(&text), [away]);
}

#[test]
fn a_task_that_leaves_the_run_queue_or_calls_schedule_sleeps() {
    let asleep = |inner: &str| {
        let text = trace(&[
            ("1.000000", 0, "", 0, "handle_mm_fault() {"),
            ("1.000001", 0, "", 1, "io_schedule() {"),
            ("1.000002", 0, "", 2, "schedule() {"),
            ("1.000003", 0, "1.000", 3, inner),
            ("1.003004", 1, "1.000", 3, "finish_task_switch();"),
            ("1.003006", 1, "3004.000", 2, "} /* schedule */"),
            ("1.003007", 1, "3006.000", 1, "} /* io_schedule */"),
            ("1.003008", 1, "3008.000", 0, "} /* handle_mm_fault */"),
        ]);
        waits(&text)
    };
    let away = ("schedule".to_owned(), 3_000_000, Wait::Blocked);
    // The task continued on another CPU.
    let away = [away];
    assert_eq!(asleep("dequeue_task_fair();"), away);
    assert_eq!(asleep("update_rq_clock();"), away);
}

/// The function in which a task comes back may be left out by a filter: the caller of the switch
/// ends after it.
#[test]
fn a_switch_is_seen_where_the_way_back_is_not_traced() {
    let text = trace(&[
        ("1.000000", 0, "", 0, "handle_mm_fault() {"),
        ("1.000001", 0, "", 1, "schedule() {"),
        ("1.000002", 0, "1.000", 2, "psi_task_switch();"),
        ("1.000004", 0, "1.000", 2, "switch_mm_irqs_off();"),
        ("1.002006", 0, "2005.000", 1, "} /* schedule */"),
        ("1.002007", 0, "2007.000", 0, "} /* handle_mm_fault */"),
    ]);
    let away = ("schedule".to_owned(), 2_001_000, Wait::Blocked);
    assert_eq!(waits(&text), [away]);
}

/// The line of a switch, and the event, report the same time as the gap: it counts once.
#[test]
fn a_switch_that_is_told_twice_counts_once() {
    let before = [
        ("1.000000", 0, "", 0, "handle_mm_fault() {"),
        ("1.000001", 0, "", 1, "schedule() {"),
        ("1.000004", 0, "1.000", 2, "switch_mm_irqs_off();"),
    ];
    let after = [
        ("1.002006", 0, "1.000", 2, "finish_task_switch();"),
        ("1.002008", 0, "2007.000", 1, "} /* schedule */"),
        ("1.002009", 0, "2009.000", 0, "} /* handle_mm_fault */"),
    ];
    let lines = " ------------------------------------------\n 0)   wl-7   =>   sh-8   \n \
                 ------------------------------------------\n\n";
    let back = lines.replace("wl-7   =>   sh-8", "sh-8   =>   wl-7");
    let text = [trace(&before), lines.to_owned(), back, trace(&after)].concat();
    let away = ("schedule".to_owned(), 2_001_000, Wait::Blocked);
    assert_eq!(waits(&text), [away]);

    let event = |time: &str, from: &str, to: &str| {
        format!(
            "   {time} |   0)   wl-7    |               |  /* sched_switch: prev_comm=a \
             prev_pid={from} prev_prio=120 prev_state=R ==> next_comm=b next_pid={to} \
             next_prio=120 */\n"
        )
    };
    let there = event("1.000003", "7", "8");
    let back = event("1.002000", "8", "7");
    let text = [trace(&before), there, back, trace(&after)].concat();
    let away = ("schedule".to_owned(), 1_995_000, Wait::Runnable);
    assert_eq!(waits(&text), [away]);
}

/// As in a trace of 7.2: an interrupt's tail lets another task run, inside whatever it struck. The
/// scheduler's calls belong to the interrupt, and the time away to the call in which it struck:
/// here at its entry, one level off.
#[test]
fn a_preempted_task_is_off_the_cpu_at_the_interrupt() {
    let text = trace(&[
        ("1.000000", 0, "", 0, "handle_mm_fault() {"),
        ("1.000001", 0, "1.000", 2, "irq_enter_rcu();"),
        ("1.000003", 0, "1.000", 2, "rcu_note_context_switch();"),
        ("1.000005", 0, "1.000", 2, "pick_task_fair();"),
        ("1.000007", 0, "1.000", 2, "switch_mm_irqs_off();"),
        ("1.004008", 0, "1.000", 2, "finish_task_switch();"),
        ("1.004010", 0, "", 1, "get_vma_policy() {"),
        ("1.004011", 0, "1.000", 2, "__rcu_read_lock();"),
        ("1.004013", 0, "4011.500", 1, "} /* get_vma_policy */"),
        ("1.004014", 0, "4014.000", 0, "} /* handle_mm_fault */"),
    ]);
    let away = ("get_vma_policy".to_owned(), 4_000_000, Wait::Runnable);
    assert_eq!(waits(&text), [away]);

    let inside = trace(&[
        ("1.000000", 0, "", 0, "handle_mm_fault() {"),
        ("1.000001", 0, "", 1, "get_vma_policy() {"),
        ("1.000003", 0, "1.000", 2, "rcu_note_context_switch();"),
        ("1.000005", 0, "1.000", 2, "pick_task_fair();"),
        ("1.000007", 0, "1.000", 2, "switch_mm_irqs_off();"),
        ("1.004008", 0, "1.000", 2, "finish_task_switch();"),
        ("1.004010", 0, "1.000", 2, "__rcu_read_lock();"),
        ("1.004013", 0, "4011.500", 1, "} /* get_vma_policy */"),
        ("1.004014", 0, "4014.000", 0, "} /* handle_mm_fault */"),
    ]);
    let (tree, _) = fault(&inside);
    assert_eq!(tree.interrupts, [2, 3, 4, 5]);
    let away = ("get_vma_policy".to_owned(), 4_000_000, Wait::Runnable);
    assert_eq!(waits(&inside), [away]);
}

/// The kernel's columns by default, without times: switches are lines of their own, and only closing
/// lines show how long calls took.
const DEFAULT: &str = "# tracer: function_graph
#
# CPU  DURATION                  FUNCTION CALLS
# |     |   |                     |   |   |   |
 4)   1.000 us    |  handle_mm_fault();
 ------------------------------------------
 4)  kworke-22    =>    bash-100   
 ------------------------------------------

 4)   2.000 us    |  handle_mm_fault();
 4)               |  handle_mm_fault() {
 4)   0.552 us    |    down_read();
 4)               |    schedule() {
 4)   0.500 us    |      rcu_note_context_switch();
 ------------------------------------------
 4)   bash-100    =>   kworke-22   
 ------------------------------------------

 4)   3.000 us    |      finish_task_switch();
 4) ! 200.000 us  |    } /* schedule */
 4)               |    schedule() {
 4)   0.500 us    |      rcu_note_context_switch();
 ------------------------------------------
 4)  kworke-22    =>    bash-100   
 ------------------------------------------

 4)   0.400 us    |      finish_task_switch();
 4) ! 300.000 us  |    } /* schedule */
 4) ! 306.124 us  |  } /* handle_mm_fault */
 4)   2.500 us    |  handle_mm_fault();
";

#[test]
fn a_switch_in_default_columns_neither_loses_nor_stretches() {
    let mut faults = Vec::new();
    let mut sink = |tree: &CallTree, _: &Names| {
        faults.push((tree.nodes[0].span.ns, tree.nodes.len()));
    };
    let summary = read_bytes(DEFAULT.as_bytes(), &mut sink);
    assert_eq!(summary.counts.unknown_lines, 0);
    // handle_mm_fault, down_read, schedule and two calls in it: none of the other task's.
    assert_eq!(faults, [(1_000, 1), (2_000, 1), (306_124, 5), (2_500, 1)]);
}
