//! A small scheduler and tracer that write the same text as the kernel's
//! (`kernel/trace/trace_functions_graph.c`).

use std::collections::HashSet;
use std::fmt::Write;

/// Options of the text.
#[derive(Clone, Debug)]
pub struct Options {
    pub tail: bool,
    pub proc: bool,
    pub overhead: bool,
    pub latency: bool,
    pub args: bool,
    /// None, 6.5, 6.13 decimal, 6.13 hexadecimal.
    pub retval: u8,
    pub cpus: u32,
    pub tasks: u32,
    /// Whether switches are events, too.
    pub sched: bool,
}

/// One call of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    pub name: String,
    pub depth: u32,
    pub ns: u64,
    pub off_ns: u64,
}

/// A line with what is needed to simulate a loss.
struct Line {
    text: String,
    cpu: u32,
    /// The tree of a call's line.
    tree: Option<usize>,
    is_call: bool,
}

struct Tree {
    start: u64,
    calls: Vec<Call>,
    done: bool,
}

#[derive(Default)]
struct Task {
    /// Open calls: index in the tree and time of the beginning.
    open: Vec<(usize, u64)>,
    tree: Option<usize>,
    away_since: Option<u64>,
}

/// A trace with its history.
pub struct Simulation {
    options: Options,
    random: Random,
    now: u64,
    lines: Vec<Line>,
    tasks: Vec<Task>,
    running: Vec<usize>,
    trees: Vec<Tree>,
    finished: Vec<usize>,
}

struct Random(u64);

impl Random {
    /// A number below `limit` (splitmix64).
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % limit
    }
}

const NAMES: [&str; 6] = [
    "handle_mm_fault",
    "do_wp_page.isra.0",
    "__alloc_pages_noprof",
    "_raw_spin_lock",
    "ext4_fault [ext4]",
    "clear_page_erms",
];
const COMMS: [&str; 5] = ["bash", "mt anon", "kworker", "a|b) x", "x-1 [y]"];

impl Simulation {
    /// Runs a few hundred steps.
    pub fn run(options: &Options, seed: u64) -> Self {
        let mut simulation = Self {
            options: options.clone(),
            random: Random(seed),
            now: 12_000_000_000,
            lines: Vec::new(),
            tasks: (0..options.tasks.max(options.cpus))
                .map(|_| Task::default())
                .collect(),
            running: (0..options.cpus as usize).collect(),
            trees: Vec::new(),
            finished: Vec::new(),
        };
        for _ in 0..150 {
            simulation.step();
        }
        simulation
    }

    /// The text, with a header.
    pub fn text(&self) -> String {
        let lines: String = self.lines.iter().map(|line| line.text.as_str()).collect();
        format!("{}{lines}", self.header())
    }

    /// The complete trees in the order of their ends.
    pub fn complete(&self) -> Vec<(Option<u64>, Vec<Call>)> {
        let trees = self.finished.iter().map(|&tree| &self.trees[tree]);
        trees
            .map(|tree| (Some(tree.start), tree.calls.clone()))
            .collect()
    }

    /// The text with some lines of one CPU lost at one place, and the starts of trees that must
    /// come out nevertheless: those without a line at or after the loss, and those that begin after
    /// it.
    pub fn with_losses(&self, seed: u64) -> (String, Vec<u64>) {
        let mut random = Random(seed ^ 0x55);
        let cpu = u32::try_from(random.below(u64::from(self.options.cpus))).expect("small");
        let at = usize::try_from(random.below(self.lines.len() as u64)).expect("small");
        let mut many = random.below(6) + 1;
        let (mut text, mut lost) = (self.header(), 0);
        let mut touched = HashSet::new();
        let mut behind = HashSet::new();
        for (place, line) in self.lines.iter().enumerate() {
            if lost > 0 && line.cpu == cpu && !line.is_call {
                many = lost;
            }
            if place >= at && line.cpu == cpu && line.is_call && lost < many {
                lost += 1;
                touched.extend(line.tree);
                if lost == 1 {
                    let _ = writeln!(text, "CPU:{cpu} [LOST {many} EVENTS]");
                    touched.extend(self.open_at(place));
                }
                continue;
            }
            if place > at {
                behind.extend(line.tree);
            }
            text.push_str(&line.text);
        }
        let safe = |tree: &&usize| !touched.contains(*tree);
        let safe = self.finished.iter().filter(safe);
        (text, safe.map(|&tree| self.trees[tree].start).collect())
    }

    /// Trees with lines on both sides of a place.
    fn open_at(&self, place: usize) -> HashSet<usize> {
        let trees = |lines: &[Line]| lines.iter().filter_map(|l| l.tree).collect::<HashSet<_>>();
        let (before, after) = self.lines.split_at(place);
        trees(before).intersection(&trees(after)).copied().collect()
    }

    fn header(&self) -> String {
        let latency = if self.options.latency {
            "#   _-----=> irqs-off\n"
        } else {
            ""
        };
        format!("# tracer: function_graph\n#\n{latency}")
    }

    fn step(&mut self) {
        self.now += 1000 * (1 + self.random.below(30));
        if self.random.below(40) == 0 {
            self.now += 1_000_000 * self.random.below(20_000);
        }
        let cpu = usize::try_from(self.random.below(u64::from(self.options.cpus))).expect("small");
        let task = self.running[cpu];
        let depth = self.tasks[task].open.len();
        match self.random.below(10) {
            0 if self.tasks.len() > self.running.len() => self.switch(cpu),
            1..=3 if depth < 6 => self.open(cpu, task),
            4..=6 if depth > 0 => self.close(cpu, task),
            7 if depth > 0 => self.event(cpu, task),
            _ => self.leaf(cpu, task),
        }
    }

    fn switch(&mut self, cpu: usize) {
        let from = self.running[cpu];
        let free: Vec<usize> = (0..self.tasks.len())
            .filter(|t| !self.running.contains(t))
            .collect();
        let to = free[usize::try_from(self.random.below(free.len() as u64)).expect("small")];
        if self.options.sched {
            let text = format!(
                "/* sched_switch: prev_comm={} prev_pid={} prev_prio=120 prev_state=S ==> next_comm={} next_pid={} next_prio=120 */",
                comm(from),
                pid(from),
                comm(to),
                pid(to)
            );
            self.line(cpu, from, None, &text, false);
            self.tasks[from].away_since = Some(self.now);
            self.back(to);
        }
        self.running[cpu] = to;
        let rule = " ------------------------------------------\n";
        let text = format!(
            "{rule} {cpu}) {} => {}\n{rule}\n",
            centred(from),
            centred(to)
        );
        self.raw(cpu, None, text, false);
    }

    fn back(&mut self, task: usize) {
        let state = &mut self.tasks[task];
        let (Some(since), Some(tree), Some(&(call, _))) =
            (state.away_since.take(), state.tree, state.open.last())
        else {
            return;
        };
        self.trees[tree].calls[call].off_ns += self.now - since;
    }

    fn open(&mut self, cpu: usize, task: usize) {
        let name = self.name();
        let call = self.begin(task, &name, 0);
        let args = if self.options.args {
            "mm=0xff12, addr=0x7f"
        } else {
            ""
        };
        let text = format!("{name}({args}) {{");
        self.line(cpu, task, None, &text, true);
        let now = self.now;
        self.tasks[task].open.push((call, now));
    }

    fn leaf(&mut self, cpu: usize, task: usize) {
        let name = self.name();
        let ns = 1 + self.random.below(999);
        self.begin(task, &name, ns);
        let returned = self.returned("", true);
        let text = format!("{name}();{returned}");
        self.line(cpu, task, Some(ns), &text, true);
        if self.tasks[task].open.is_empty() {
            self.finish(task);
        }
    }

    fn close(&mut self, cpu: usize, task: usize) {
        let Some((call, began)) = self.tasks[task].open.pop() else {
            return;
        };
        let ns = printed(self.now - began);
        let tree = self.tasks[task].tree.expect("an open call is in a tree");
        self.trees[tree].calls[call].ns = ns;
        let name = self.trees[tree].calls[call].name.clone();
        let name = if name == "ext4_fault" {
            NAMES[4].to_owned()
        } else {
            name
        };
        let text = if self.options.retval > 0 {
            format!("}}{}", self.returned(&name, false))
        } else if self.options.tail {
            format!("}} /* {name} */")
        } else {
            "}".to_owned()
        };
        self.line(cpu, task, Some(self.now - began), &text, true);
        if self.tasks[task].open.is_empty() {
            self.finish(task);
        }
    }

    fn event(&mut self, cpu: usize, task: usize) {
        self.line(
            cpu,
            task,
            None,
            "/* mmap_lock_released: mm=0 {;} write=false */",
            false,
        );
    }

    fn begin(&mut self, task: usize, name: &str, ns: u64) -> usize {
        let depth = u32::try_from(self.tasks[task].open.len()).expect("small");
        let tree = *self.tasks[task].tree.get_or_insert_with(|| {
            self.trees.push(Tree {
                start: self.now,
                calls: Vec::new(),
                done: false,
            });
            self.trees.len() - 1
        });
        self.trees[tree].calls.push(Call {
            name: name.split(' ').next().unwrap_or(name).to_owned(),
            depth,
            ns,
            off_ns: 0,
        });
        self.trees[tree].calls.len() - 1
    }

    fn finish(&mut self, task: usize) {
        if let Some(tree) = self.tasks[task].tree.take() {
            self.trees[tree].done = true;
            self.finished.push(tree);
        }
    }

    fn name(&mut self) -> String {
        NAMES[usize::try_from(self.random.below(NAMES.len() as u64)).expect("small")].to_owned()
    }

    fn returned(&self, name: &str, leaf: bool) -> String {
        let value = match (self.options.retval, leaf) {
            (0, _) => return String::new(),
            (1, true) => "= 0x0".to_owned(),
            (1, false) => format!("{name} = -14"),
            (2, true) => "ret=-12".to_owned(),
            (2, false) => format!("{name} ret=-12"),
            (_, true) => "<-caller+0x12/0x30 ret=0x10".to_owned(),
            (_, false) => format!("{name} ret=0x10"),
        };
        format!(" /* {value} */")
    }

    /// A line of a task; its depth is the number of open calls.
    fn line(&mut self, cpu: usize, task: usize, ns: Option<u64>, text: &str, is_call: bool) {
        let depth = self.tasks[task].open.len();
        let (seconds, micros) = (self.now / 1_000_000_000, self.now / 1000 % 1_000_000);
        let mut line = format!("{seconds:5}.{micros:06} |   {cpu}) ");
        if self.options.proc {
            let _ = write!(line, "{} | ", centred(task));
        }
        if self.options.latency {
            line.push_str(" d..1. | ");
        }
        line.push_str(&self.duration(ns));
        let _ = writeln!(line, "|  {}{text}", "  ".repeat(depth));
        let tree = self.tasks[task].tree;
        self.raw(cpu, tree, line, is_call);
    }

    fn duration(&self, ns: Option<u64>) -> String {
        let Some(ns) = ns else { return " ".repeat(14) };
        let mark = match ns {
            _ if !self.options.overhead => ' ',
            1_000_000_001.. => '$',
            100_000_001.. => '@',
            10_000_001.. => '*',
            1_000_001.. => '#',
            100_001.. => '!',
            10_001.. => '+',
            _ => ' ',
        };
        format!("{mark} {:<12}", format!("{} us ", number(ns)))
    }

    fn raw(&mut self, cpu: usize, tree: Option<usize>, text: String, is_call: bool) {
        self.lines.push(Line {
            text,
            cpu: u32::try_from(cpu).expect("small"),
            tree,
            is_call,
        });
    }
}

/// `trace_print_graph_duration`: whole microseconds, then as many decimals as fit eight columns.
fn number(ns: u64) -> String {
    let micros = (ns / 1000).to_string();
    if micros.len() >= 7 {
        return micros;
    }
    let decimals = format!("{:03}", ns % 1000);
    let room = (7 - micros.len()).min(3);
    format!("{micros}.{}", &decimals[..room])
}

/// What is left of a duration when it is printed.
fn printed(ns: u64) -> u64 {
    match (ns / 1000).to_string().len() {
        0..=4 => ns,
        5 => ns / 10 * 10,
        6 => ns / 100 * 100,
        _ => ns / 1000 * 1000,
    }
}

fn pid(task: usize) -> usize {
    100 + task * 7
}

fn comm(task: usize) -> &'static str {
    COMMS[task % COMMS.len()]
}

/// `print_graph_proc`: seven characters, dash, id, centred in fourteen columns.
fn centred(task: usize) -> String {
    let text = format!("{}-{}", comm(task), pid(task));
    let room = 14_usize.saturating_sub(text.len());
    let left = room / 2;
    format!("{}{text}{}", " ".repeat(left), " ".repeat(room - left))
}
