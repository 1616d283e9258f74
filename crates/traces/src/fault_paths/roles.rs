//! The role of each function of a trace, looked up once per name.

use super::layer::{Layer, layer_of};
use super::locks::lock_of;
use super::signature::{Signs, signs_of};
use pagewise_formats::function_graph::{Names, Wait, is_interrupt};
use pagewise_model::fault_paths::Lock;

/// The role of a function.
#[derive(Clone, Copy, Debug)]
pub(super) struct Role {
    pub signs: Signs,
    pub layer: Option<Layer>,
    pub interrupt: bool,
    pub lock: Option<Lock>,
    /// Why a task that gives up the CPU here does so.
    pub wait: Option<Wait>,
}

/// The roles of all names of a trace, by id.
#[derive(Clone, Debug, Default)]
pub(super) struct Roles(Vec<Role>);

impl Roles {
    /// Adds the names added since the last call.
    #[inline]
    pub(super) fn learn(&mut self, names: &Names) {
        if self.0.len() < names.len() {
            let new = names
                .iter()
                .skip(self.0.len())
                .map(|(id, _)| names.base(id));
            self.0.extend(new.map(role_of));
        }
    }

    #[inline]
    pub(super) fn role(&self, name: u32) -> Role {
        self.0[name as usize]
    }
}

fn role_of(base: &str) -> Role {
    Role {
        signs: signs_of(base),
        layer: layer_of(base),
        interrupt: is_interrupt(base),
        lock: lock_of(base),
        wait: wait_in(base),
    }
}

fn wait_in(base: &str) -> Option<Wait> {
    let yields = base.starts_with("preempt_schedule") || base.ends_with("_cond_resched");
    match signs_of(base).has(Signs::SCHEDULE) {
        _ if yields => Some(Wait::Runnable),
        true if base == "__schedule" => Some(Wait::Estimated),
        true => Some(Wait::Blocked),
        false => None,
    }
}
