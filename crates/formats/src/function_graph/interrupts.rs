//! Functions that run on behalf of an interrupt, so that their time is not part of the interrupted
//! fault.
//!
//! Up to 5.7 the text marks interrupts with arrows (`funcgraph-irqs`); since 5.8 their frames look
//! like any other call and can be recognised only by name and position (`arch/x86/kernel/irq.c`,
//! `arch/x86/include/asm/idtentry.h`, `kernel/softirq.c`, `arch/arm64/kernel/entry-common.c`).
//!
//! The second list is the part of the timer tick that remains visible when a filter hides its outer
//! frames.

/// Outermost frames of interrupts, softirqs and NMIs.
const FRAMES: &[&str] = &[
    "__common_interrupt",
    "__do_softirq",
    "__handle_domain_irq",
    "__hrtimer_rearm_deferred",
    "__irq_exit_rcu",
    "common_interrupt",
    "default_do_nmi",
    "default_handle_irq",
    "do_IRQ",
    "do_interrupt_handler",
    "do_nmi",
    "do_softirq",
    "do_softirq_own_stack",
    "el0_interrupt",
    "el1_interrupt",
    "exc_nmi",
    "generic_handle_arch_irq",
    "generic_handle_domain_irq",
    "gic_handle_irq",
    "handle_domain_irq",
    "handle_irq",
    "handle_softirqs",
    "irq_enter",
    "irq_enter_rcu",
    "irq_exit",
    "irq_exit_rcu",
    "irq_work_run",
    "irqentry_enter",
    "irqentry_exit",
    "irqentry_exit_cond_resched",
    "irqtime_account_irq",
    "nmi_handle",
    "raw_irqentry_exit_cond_resched",
    "scheduler_ipi",
    "uv_bau_message_interrupt",
    "xen_evtchn_do_upcall",
    "xen_hvm_evtchn_do_upcall",
];

const PREFIXES: &[&str] = &[
    "__sysvec_",
    "sysvec_",
    "asm_sysvec_",
    "smp_apic_timer_interrupt",
    "smp_call_function_",
    "smp_reschedule_interrupt",
    "smp_irq_work_interrupt",
    "smp_trace_",
    "fred_sysvec_",
];

/// Functions of the timer tick, which no fault calls directly.
const TICK: &[&str] = &[
    "account_process_tick",
    "account_system_time",
    "account_user_time",
    "acct_account_cputime",
    "cpuacct_account_field",
    "hrtimer_interrupt",
    "note_gp_changes",
    "rcu_sched_clock_irq",
    "run_posix_cpu_timers",
    "sched_tick",
    "scheduler_tick",
    "task_tick_fair",
    "tick_handle_periodic",
    "tick_nohz_handler",
    "tick_sched_handle",
    "tick_sched_timer",
    "timekeeping_advance",
    "trigger_load_balance",
    "sched_balance_trigger",
    "update_process_times",
];

/// Whether a function, given by its name without suffixes ([`super::base_name`]), is the outermost
/// frame of an interrupt or part of the timer tick.
#[must_use]
pub fn is_interrupt(base: &str) -> bool {
    FRAMES.binary_search(&base).is_ok()
        || PREFIXES.iter().any(|prefix| base.starts_with(prefix))
        || TICK.contains(&base)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_frames_is_sorted() {
        assert!(FRAMES.is_sorted());
    }

    #[test]
    fn interrupts_are_told_from_faults() {
        for name in [
            "irq_enter_rcu",
            "__sysvec_apic_timer_interrupt",
            "do_IRQ",
            "update_process_times",
        ] {
            assert!(is_interrupt(name), "{name}");
        }
        for name in [
            "handle_mm_fault",
            "_raw_spin_lock",
            "do_fault",
            "schedule",
            "update_curr",
        ] {
            assert!(!is_interrupt(name), "{name}");
        }
    }
}
