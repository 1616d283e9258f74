//! Event sources: perf_event attributes of what the kernel is to record.

use perf_event_open_sys::bindings::{self, perf_event_attr};

use super::registers;
use crate::sys::perf_event;
use crate::tracefs::Tracepoint;
use pagewise_formats::perf_data::sample_type;
use pagewise_model::event::UserStack;
use std::ffi::CStr;

/// One event source, the same for all threads and CPUs.
#[derive(Clone)]
pub(super) struct Source {
    /// Its name in perf.
    pub name: String,
    /// Attributes of the event. `disabled` and `enable_on_exec` are set when opening.
    pub attr: perf_event_attr,
    /// Cost of one record to the program in nanoseconds.
    pub unit_cost: u64,
    /// Which hits of a tracepoint are recorded.
    pub filter: Option<&'static CStr>,
}

/// What the kernel allows us to record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Access {
    /// Events raised in the kernel too.
    pub kernel: bool,
    /// `PERF_FORMAT_LOST` (Linux 6.0).
    pub counts_losses: bool,
    /// Samples contain the control group (Linux 5.7, `CONFIG_CGROUP_PERF`).
    pub cgroups: bool,
    /// Everything that a CPU runs, of any process.
    pub machine: bool,
}

/// Nanoseconds that one record costs the program that caused it, by kind: estimates that steer the
/// governor, measured as the CPU time that storms of one kind take more (Linux 6.18, 2 vCPU);
/// `CPU` and `SIDE_BAND` are assumed. What an open source costs while it records nothing is not in
/// them: 40 to 90 ns for each fault, 140 ns for each system call.
mod unit_cost {
    /// A fault with address and time.
    pub const PLAIN: u64 = 500;
    /// A fault with a call chain by frame pointers.
    pub const CHAIN: u64 = 1_300;
    /// A fault or tracepoint with a copy of the stack.
    pub const STACK_COPY: u64 = 5_000;
    /// A tracepoint with its payload.
    pub const TRACEPOINT: u64 = 1_000;
    /// A tracepoint with its payload and a call chain.
    pub const TRACEPOINT_CHAIN: u64 = 1_700;
    /// A sample of CPU time with a call chain, the timer's interrupt included.
    pub const CPU: u64 = 3_000;
    /// A sample of CPU time with a copy of the stack.
    pub const CPU_STACK_COPY: u64 = 8_000;
    /// A name or lifetime.
    pub const SIDE_BAND: u64 = 500;
    /// A mapping.
    pub const MAPPING: u64 = 2_000;
}

/// Bytes of user stack copied for unwinding without frame pointers. perf's default.
const STACK_COPY: u32 = 8192;

impl Access {
    /// The sample field that contains the control group, if the kernel has it.
    fn cgroup(self) -> u64 {
        match self.cgroups {
            true => sample_type::CGROUP,
            false => 0,
        }
    }
}

/// Software events of include/uapi/linux/perf_event.h for page faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// At the entry of the fault handler.
    Entry,
    /// After a minor fault was handled.
    MinorEnd,
    /// After a major fault was handled.
    MajorEnd,
}

impl Fault {
    fn config(self) -> u64 {
        u64::from(match self {
            Self::Entry => bindings::PERF_COUNT_SW_PAGE_FAULTS,
            Self::MinorEnd => bindings::PERF_COUNT_SW_PAGE_FAULTS_MIN,
            Self::MajorEnd => bindings::PERF_COUNT_SW_PAGE_FAULTS_MAJ,
        })
    }

    fn name(self) -> &'static str {
        match self {
            Self::Entry => "page-faults",
            Self::MinorEnd => "minor-faults",
            Self::MajorEnd => "major-faults",
        }
    }
}

impl Source {
    /// Each `period`-th fault with everything that shows its origin: call chain, code and data
    /// address, CPU.
    pub fn fault_with_chain(fault: Fault, period: u64, access: Access) -> Self {
        let mut attr = base(bindings::PERF_TYPE_SOFTWARE, fault.config(), access);
        attr.sample_type |= sample_type::IP | sample_type::ADDR | sample_type::CALLCHAIN;
        attr.sample_type |= access.cgroup();
        set_period(&mut attr, period);
        Self::new(fault.name(), attr, unit_cost::CHAIN)
    }

    /// Faults with registers and a copy of the user stack, next to the call chain.
    pub fn fault_with_stack(period: u64, access: Access) -> Self {
        Self::fault_with_chain(Fault::Entry, period, access).with_stack()
    }

    fn with_stack(mut self) -> Self {
        self.attr.sample_type |= sample_type::REGS_USER | sample_type::STACK_USER;
        self.attr.sample_regs_user = registers::USER_MASK;
        self.attr.sample_stack_user = STACK_COPY;
        // The user part of the stack is unwound from the copy; perf would put a second one, by
        // frame pointers, before it.
        self.attr.set_exclude_callchain_user(1);
        self.unit_cost = unit_cost::STACK_COPY;
        self
    }

    /// Each fault with address and time only, as cheap as possible.
    pub fn each_fault(fault: Fault, access: Access) -> Self {
        let mut attr = base(bindings::PERF_TYPE_SOFTWARE, fault.config(), access);
        attr.sample_type &= !sample_type::CPU;
        attr.sample_type |= sample_type::ADDR;
        if fault == Fault::Entry {
            attr.sample_type |= sample_type::IP;
        }
        set_period(&mut attr, 1);
        Self::new(fault.name(), attr, unit_cost::PLAIN)
    }

    /// CPU time with call chains, `frequency` samples per second on each busy CPU: by cycles if the
    /// machine counts them, otherwise by the clock.
    pub fn cpu(frequency: u64, stacks: bool, access: Access) -> Self {
        let cycles = Self::cycles(frequency, access);
        let source = match perf_event::counts(&cycles.attr) {
            true => cycles,
            false => Self::cpu_clock(frequency, access),
        };
        match stacks {
            true => Self {
                unit_cost: unit_cost::CPU_STACK_COPY,
                ..source.with_stack()
            },
            false => source,
        }
    }

    /// The samples contain the period, because the kernel adapts it to the wanted frequency.
    fn cycles(frequency: u64, access: Access) -> Self {
        let config = u64::from(bindings::PERF_COUNT_HW_CPU_CYCLES);
        let mut attr = base(bindings::PERF_TYPE_HARDWARE, config, access);
        attr.sample_type |= sample_type::IP | sample_type::CALLCHAIN | sample_type::PERIOD;
        attr.sample_type |= access.cgroup();
        attr.set_freq(1);
        attr.__bindgen_anon_1.sample_freq = frequency;
        Self::new("cycles", attr, unit_cost::CPU)
    }

    /// A timer; its period is in nanoseconds, and the kernel turns a frequency into a fixed period
    /// anyway (`perf_swevent_init_hrtimer`, kernel/events/core.c).
    fn cpu_clock(frequency: u64, access: Access) -> Self {
        let config = u64::from(bindings::PERF_COUNT_SW_CPU_CLOCK);
        let mut attr = base(bindings::PERF_TYPE_SOFTWARE, config, access);
        attr.sample_type |= sample_type::IP | sample_type::CALLCHAIN;
        attr.sample_type |= access.cgroup();
        set_period(&mut attr, 1_000_000_000 / frequency.max(1));
        Self::new("cpu-clock", attr, unit_cost::CPU)
    }

    /// The same source without samples of idle CPUs. Cycles are not counted on an idle CPU anyway,
    /// and AArch64 refuses to exclude idle for them (drivers/perf/arm_pmuv3.c).
    pub fn passing_over_idleness(mut self) -> Self {
        let is_timer = self.attr.type_ == bindings::PERF_TYPE_SOFTWARE;
        self.attr.set_exclude_idle(u64::from(is_timer));
        self
    }

    /// Each switch away from a thread with its call chain, and each switch back to one
    /// (`PERF_RECORD_SWITCH`).
    pub fn switches(access: Access) -> Self {
        let config = u64::from(bindings::PERF_COUNT_SW_CONTEXT_SWITCHES);
        let mut attr = base(bindings::PERF_TYPE_SOFTWARE, config, access);
        attr.sample_type |= sample_type::IP | sample_type::CALLCHAIN;
        attr.sample_type |= access.cgroup();
        attr.set_context_switch(1);
        set_period(&mut attr, 1);
        Self::new("context-switches", attr, unit_cost::CHAIN)
    }

    /// Names and lifetimes of threads and mappings of code.
    pub fn lifetimes(access: Access) -> Self {
        let mut source = Self::mappings_of("dummy", access);
        source.attr.set_mmap(1);
        source.attr.set_comm(1);
        source.attr.set_comm_exec(1);
        source.attr.set_task(1);
        source.attr.set_cgroup(u64::from(access.cgroups));
        source
    }

    /// Mappings of data: anonymous memory, the heap's growth, files.
    pub fn mappings(access: Access) -> Self {
        let mut source = Self::mappings_of("dummy", access);
        source.attr.set_mmap_data(1);
        source.unit_cost = unit_cost::MAPPING;
        source
    }

    /// Records nothing.
    pub fn nothing(access: Access) -> Self {
        let dummy = u64::from(bindings::PERF_COUNT_SW_DUMMY);
        let mut attr = base(bindings::PERF_TYPE_SOFTWARE, dummy, access);
        set_period(&mut attr, 1);
        Self::new("dummy", attr, 0)
    }

    /// The same, with every third major fault in the same event: another event would cost each
    /// context switch. A major fault takes as long as its device, so the cost of a record is small
    /// in comparison.
    pub fn mappings_and_majors(access: Access) -> Self {
        const PERIOD: u64 = 3;
        let mut attr = Self::mappings(access).attr;
        attr.config = Fault::MajorEnd.config();
        attr.sample_type |= sample_type::ADDR;
        set_period(&mut attr, PERIOD);
        Self::new(Fault::MajorEnd.name(), attr, unit_cost::MAPPING)
    }

    fn mappings_of(name: &str, access: Access) -> Self {
        let dummy = u64::from(bindings::PERF_COUNT_SW_DUMMY);
        let mut attr = base(bindings::PERF_TYPE_SOFTWARE, dummy, access);
        attr.set_mmap2(1);
        set_period(&mut attr, 1);
        Self::new(name, attr, unit_cost::SIDE_BAND)
    }

    /// Each hit of a tracepoint with its payload.
    pub fn tracepoint(point: &Tracepoint, access: Access) -> Self {
        let mut attr = base(bindings::PERF_TYPE_TRACEPOINT, point.id, access);
        attr.sample_type |= sample_type::RAW;
        attr.set_exclude_kernel(0);
        set_period(&mut attr, 1);
        let name = format!("{}:{}", point.system, point.name);
        Self::new(&name, attr, unit_cost::TRACEPOINT)
    }

    /// The same with enough to find the caller of the function that makes the call: few registers
    /// and the stack's first words, which cost a tenth of a call chain.
    pub fn with_caller(mut self) -> Self {
        self.attr.sample_type |= sample_type::REGS_USER | sample_type::STACK_USER;
        self.attr.sample_regs_user = registers::FRAME_MASK;
        self.attr.sample_stack_user = UserStack::HEAD;
        self
    }

    /// Each `period`-th hit of a tracepoint with payload and call chain.
    pub fn tracepoint_with_chain(point: &Tracepoint, period: u64, access: Access) -> Self {
        let mut source = Self::tracepoint(point, access);
        source.attr.sample_type |= sample_type::IP | sample_type::CALLCHAIN;
        source.unit_cost = unit_cost::TRACEPOINT_CHAIN;
        set_period(&mut source.attr, period);
        source
    }

    /// Each `period`-th hit of a tracepoint with payload, call chain and a copy of the user stack.
    pub fn tracepoint_with_stack(point: &Tracepoint, period: u64, access: Access) -> Self {
        Self::tracepoint_with_chain(point, period, access).with_stack()
    }

    /// The same source, recording only hits that pass `filter`.
    pub fn filtered(self, filter: &'static CStr) -> Self {
        Self {
            filter: Some(filter),
            ..self
        }
    }

    fn new(name: &str, attr: perf_event_attr, unit_cost: u64) -> Self {
        Self {
            name: name.to_owned(),
            attr,
            unit_cost,
            filter: None,
        }
    }

    /// Offset of process and thread id in its samples, in bytes.
    pub fn thread_offset(&self) -> usize {
        self.time_offset() - 8
    }

    /// Offset of the user call chain by frame pointers in its samples of CPU time, in bytes; `None`
    /// where they have none.
    pub fn chain_offset(&self) -> Option<usize> {
        let has = |bit| self.attr.sample_type & bit != 0;
        let has_chain = has(sample_type::CALLCHAIN) && !has(sample_type::STACK_USER);
        let after_time = self.time_offset() + 8;
        let between = sample_type::ADDR | sample_type::CPU | sample_type::PERIOD;
        let words = (self.attr.sample_type & between).count_ones() as usize;
        has_chain.then_some(after_time + words * 8)
    }

    /// Offset of the time in its samples, in bytes: after the header, the identifier, the address
    /// of the code if recorded, and the thread (`perf_output_sample`, kernel/events/core.c).
    pub fn time_offset(&self) -> usize {
        let ip = if self.attr.sample_type & sample_type::IP != 0 {
            8
        } else {
            0
        };
        8 + 8 + ip + 8
    }
}

/// Settings that all sources share. `IDENTIFIER` puts the id first in each sample, so that sources
/// with different fields can share a ring and a file.
fn base(kind: u32, config: u64, access: Access) -> perf_event_attr {
    let mut attr = perf_event_attr::default();
    attr.type_ = kind;
    attr.config = config;
    attr.sample_type =
        sample_type::IDENTIFIER | sample_type::TID | sample_type::TIME | sample_type::CPU;
    attr.read_format = perf_event::read_format(access.counts_losses);
    attr.clockid = libc::CLOCK_MONOTONIC;
    attr.set_use_clockid(1);
    attr.set_sample_id_all(1);
    attr.set_exclude_kernel(u64::from(!access.kernel));
    attr.set_exclude_callchain_kernel(u64::from(!access.kernel));
    attr.set_exclude_hv(1);
    attr
}

/// Each `period`-th event. `PERF_SAMPLE_PERIOD` must stay out of the sample type: with it the
/// kernel records each software event and tracepoint, whatever the period (`perf_swevent_event`,
/// kernel/events/core.c).
fn set_period(attr: &mut perf_event_attr, period: u64) {
    attr.__bindgen_anon_1.sample_period = period;
}

#[cfg(test)]
mod tests {
    use super::*;

    const ACCESS: Access = Access {
        kernel: false,
        counts_losses: true,
        cgroups: true,
        machine: false,
    };

    #[test]
    fn without_privileges_nothing_of_the_kernel_is_asked_for() {
        let source = Source::fault_with_chain(Fault::Entry, 61, ACCESS);
        assert_eq!(source.attr.exclude_kernel(), 1);
        assert_eq!(source.attr.exclude_callchain_kernel(), 1);
    }

    #[test]
    fn copied_stacks_need_no_frame_pointers_of_the_program() {
        let copied = Source::fault_with_stack(61, ACCESS);
        let walked = Source::fault_with_chain(Fault::Entry, 61, ACCESS);
        assert_eq!(copied.attr.exclude_callchain_user(), 1);
        assert_eq!(walked.attr.exclude_callchain_user(), 0);
    }

    #[test]
    fn the_caller_of_a_call_costs_few_words_and_no_walk() {
        let point = Tracepoint {
            system: "syscalls".to_owned(),
            name: "sys_enter_mmap".to_owned(),
            id: 1,
            format: String::new(),
        };
        let attr = Source::tracepoint(&point, ACCESS).with_caller().attr;
        let has = |bit| attr.sample_type & bit != 0;
        assert!(has(sample_type::REGS_USER) && has(sample_type::STACK_USER));
        assert!(!has(sample_type::CALLCHAIN));
        // The kernel takes multiples of eight (`perf_copy_attr`, kernel/events/core.c).
        assert_eq!(attr.sample_stack_user % 8, 0);
        assert_eq!(
            attr.sample_regs_user & registers::USER_MASK,
            registers::FRAME_MASK
        );
    }

    #[test]
    fn the_time_stands_behind_the_code_address_where_there_is_one() {
        let entry = Source::each_fault(Fault::Entry, ACCESS);
        let end = Source::each_fault(Fault::MinorEnd, ACCESS);
        assert_eq!((entry.time_offset(), end.time_offset()), (32, 24));
    }

    /// See `build_ids.rs`: the kernel would mark other observers' records.
    #[test]
    fn no_source_asks_the_kernel_for_build_ids() {
        for source in [
            Source::lifetimes(ACCESS),
            Source::mappings(ACCESS),
            Source::mappings_and_majors(ACCESS),
        ] {
            assert_eq!(source.attr.build_id(), 0, "{}", source.name);
        }
    }

    #[test]
    fn all_sources_share_one_clock_and_put_the_id_first() {
        for source in [
            Source::lifetimes(ACCESS),
            Source::mappings(ACCESS),
            Source::fault_with_stack(61, ACCESS),
        ] {
            assert_eq!(source.attr.clockid, libc::CLOCK_MONOTONIC);
            assert_ne!(source.attr.sample_type & sample_type::IDENTIFIER, 0);
        }
    }
}
