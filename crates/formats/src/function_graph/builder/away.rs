//! Which task runs where: tasks that leave a CPU and come back, and what stays unknown when a CPU
//! loses events.

use super::*;

impl Builder {
    /// Without a task column, the last switch on the CPU shows which task runs.
    pub(in super::super) fn running_on(&self, cpu: u32) -> u64 {
        match self.running.get(&cpu) {
            Some(0) => IDLE | u64::from(cpu),
            Some(&pid) => u64::from(pid),
            None => UNKNOWN | u64::from(cpu),
        }
    }

    pub(in super::super) fn task(&mut self, key: u64) -> usize {
        let task = *self.index.entry(key).or_insert_with(|| {
            self.tasks.push(Task::default());
            self.tasks.len() - 1
        });
        self.last = Some((key, task));
        task
    }

    pub(super) fn event(&mut self, line: &Line<'_>, text: &[u8]) {
        let Some(switch) = switch::parse(text) else {
            return;
        };
        if line.pid.is_none() {
            self.introduce(line.cpu.unwrap_or(0), switch.prev_pid);
        }
        let cpu = line.cpu.unwrap_or(0);
        self.leaving.remove(&cpu);
        if switch.prev_pid != 0 {
            let wait = match switch.runnable {
                true => Wait::Runnable,
                false => Wait::Blocked,
            };
            let key = u64::from(switch.prev_pid);
            self.leave(key, line.time, cpu, wait);
            if let Some(&task) = self.index.get(&key)
                && self.tasks[task].away.is_some()
            {
                self.leaving.insert(cpu, task);
            }
        }
        if let Some(&task) = self.index.get(&u64::from(switch.next_pid))
            && switch.next_pid != 0
        {
            self.tasks[task].cpu = line.cpu;
            self.came_back(task, line.time);
        }
    }

    /// Without a task column, the first switch on a CPU shows which task had been running since the
    /// beginning.
    pub(super) fn introduce(&mut self, cpu: u32, pid: u32) {
        if self.is_piece || self.running.contains_key(&cpu) {
            return;
        }
        self.running.insert(cpu, pid);
        if let Some(task) = self.index.remove(&(UNKNOWN | u64::from(cpu))) {
            self.index.entry(self.running_on(cpu)).or_insert(task);
        }
        self.last = None;
    }

    pub(super) fn switched(&mut self, cpu: Option<u32>, from: u32, to: u32) {
        let cpu = cpu.unwrap_or(0);
        self.introduce(cpu, from);
        self.running.insert(cpu, to);
        self.last = None;
        if let Some(&task) = self.index.get(&u64::from(to)) {
            self.note_losses(task, Some(cpu));
            self.tasks[task].cpu = Some(cpu);
        }
        let Some(&task) = self.index.get(&u64::from(from)) else {
            return;
        };
        // The line comes with the next task's first call; by then, this task may run elsewhere.
        let state = &self.tasks[task];
        if from != 0 && state.cpu.unwrap_or(0) == cpu {
            self.leave(u64::from(from), state.last_time, cpu, Wait::Estimated);
        }
    }

    pub(super) fn leave(&mut self, key: u64, time: Option<u64>, cpu: u32, wait: Wait) {
        let Some(&task) = self.index.get(&key) else {
            return;
        };
        if self.tasks[task].stack.is_empty() || self.tasks[task].away.is_some() {
            return;
        }
        match time {
            Some(since) => self.tasks[task].away = Some(Away { since, wait, cpu }),
            // Which calls follow on this CPU is known by its switches, and how long the open calls
            // took by their closing lines.
            None if self.tasks[task].cpu.is_some() => {}
            None => self.abandon(task, LossKind::SwitchWithoutTime),
        }
    }

    pub(super) fn came_back(&mut self, task: usize, time: Option<u64>) {
        let state = &mut self.tasks[task];
        let Some(away) = state.away.take() else {
            return;
        };
        let Some(time) = time else {
            return self.abandon(task, LossKind::SwitchWithoutTime);
        };
        // Calls made after the switch was announced do not count as time away.
        let last = state.last_time;
        let from = last.map_or(away.since, |last| last.max(away.since));
        state.last_time = Some(time);
        let ns = time.saturating_sub(from);
        if let Some(frame) = running(&mut state.stack) {
            frame.leaving.account();
        }
        self.was_away(task, Gap { from, ns }, Some(away.wait));
    }

    /// Takes what a call shows of a task switch in its caller.
    #[cold]
    pub(super) fn told_of_switch(&mut self, task: usize, part: Part, gap: Gap) {
        let frame = running(&mut self.tasks[task].stack);
        if let Some(away) = frame.and_then(|frame| frame.leaving.call(part, gap)) {
            self.was_away(task, away, None);
        }
    }

    /// Takes the end of a call in which tasks were switched.
    #[cold]
    pub(super) fn closed_after_switch(&mut self, task: usize, gap: Gap) {
        let frame = self.tasks[task].stack.last_mut();
        if let Some(away) = frame.and_then(|frame| frame.leaving.close(gap)) {
            self.was_away(task, away, None);
        }
    }

    /// Records a time away in the innermost call that was running, with its reason as far as it is
    /// known.
    pub(super) fn was_away(&mut self, task: usize, gap: Gap, message: Option<Wait>) {
        let state = &mut self.tasks[task];
        let (nodes, parts) = (&state.tree.nodes, &self.parts);
        let around: Vec<Part> = state
            .stack
            .iter()
            .rev()
            .filter_map(|frame| Some(parts.known(nodes.get(frame.node as usize)?.name)))
            .collect();
        let Some(frame) = running(&mut state.stack) else {
            return;
        };
        let seen = frame.leaving.reason(around.into_iter());
        let wait = match message {
            Some(wait) if wait != Wait::Estimated => wait,
            _ => seen,
        };
        if gap.ns > 0 {
            state.tree.off_cpu.push(OffCpu {
                node: frame.node,
                from: gap.from,
                ns: gap.ns,
                wait,
            });
        }
    }

    /// Gives up the open call of a task that comes to a CPU that has lost events since the task was
    /// last seen: the task may already have been there.
    #[cold]
    pub(super) fn note_losses(&mut self, task: usize, cpu: Option<u32>) {
        let state = &mut self.tasks[task];
        if state.losses == self.losses {
            return;
        }
        let seen = std::mem::replace(&mut state.losses, self.losses);
        let lost = cpu.and_then(|cpu| self.lost_on.get(&cpu));
        if state.cpu != cpu && lost.is_some_and(|&lost| lost > seen) {
            self.abandon(task, LossKind::LostEvents);
        }
    }

    pub(super) fn lost(&mut self, cpu: Option<u32>) {
        self.losses = self.losses.saturating_add(1);
        if let Some(cpu) = cpu {
            self.lost_on.insert(cpu, self.losses);
        }
        for task in 0..self.tasks.len() {
            let last = self.tasks[task].cpu;
            if cpu.is_none() || last.is_none() || last == cpu {
                self.abandon(task, LossKind::LostEvents);
            }
        }
    }
}
