//! TCP ports on which processes listen: entries of the kernel's list of sockets that they have
//! open.
//!
//! A socket is identified by its inode: `/proc/PID/fd/N` is a link to `socket:[INODE]`, and lines
//! of `/proc/PID/net/tcp` and `tcp6` (`get_tcp4_sock`, net/ipv4/tcp_ipv4.c) end in it. The list
//! covers the process's own network namespace.

use super::{ProcRoot, Result};
use crate::pseudo_file::{self, malformed};
use rustc_hash::FxHashSet;
use std::path::Path;

/// `TCP_LISTEN` (include/net/tcp_states.h) as the list writes it.
const LISTENS: &str = "0A";

/// A socket that waits for connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Listener {
    port: u16,
    inode: u64,
}

/// Ports on which any of `pids` listens, in order. Processes whose open files we may not see add
/// none.
///
/// # Errors
/// [`Error`](super::Error) when a list is unreadable or malformed.
pub fn listening_ports(proc: &ProcRoot, pids: &[i32]) -> Result<Vec<u16>> {
    let open_sockets: FxHashSet<u64> = pids.iter().flat_map(|&pid| sockets(proc, pid)).collect();
    let mut seen = FxHashSet::default();
    let mut ports = Vec::new();
    for &pid in pids {
        // The list is long on a busy host, and the same throughout a namespace.
        let namespace = pseudo_file::link(&proc.process_path(pid, "ns/net"));
        if !seen.insert(namespace.ok().flatten()) {
            continue;
        }
        let listeners = listeners(proc, pid)?.into_iter();
        ports.extend(listeners.filter(|one| open_sockets.contains(&one.inode)));
    }
    let mut ports: Vec<u16> = ports.into_iter().map(|one| one.port).collect();
    ports.sort_unstable();
    ports.dedup();
    Ok(ports)
}

/// Whether any process listens on `port` in the network namespace of `pid`.
///
/// # Errors
/// [`Error`](super::Error) when a list is unreadable or malformed.
pub fn is_listened_on(proc: &ProcRoot, pid: i32, port: u16) -> Result<bool> {
    let listeners = listeners(proc, pid)?;
    Ok(listeners.iter().any(|one| one.port == port))
}

fn listeners(proc: &ProcRoot, pid: i32) -> Result<Vec<Listener>> {
    let mut found = Vec::new();
    for list in ["net/tcp", "net/tcp6"] {
        let path = proc.process_path(pid, list);
        // A kernel without IPv6 has no second list.
        let text = pseudo_file::text(&path)?.unwrap_or_default();
        for (at, line) in (1..).zip(text.lines()).skip(1) {
            found.extend(listener(line, at, &path)?);
        }
    }
    Ok(found)
}

/// `  0: 0100007F:18EB 00000000:0000 0A 00000000:00000000 00:00000000 00000000  0  0 4711 …`
fn listener(line: &str, at: usize, path: &Path) -> Result<Option<Listener>> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [_, local, _, state, _, _, _, _, _, inode, ..] = words.as_slice() else {
        return Err(malformed(path, at, "a socket of ten fields or more", line));
    };
    if *state != LISTENS {
        return Ok(None);
    }
    let port = local.rsplit_once(':').map(|(_, port)| port);
    let port = port.and_then(|port| u16::from_str_radix(port, 16).ok());
    match (port, inode.parse()) {
        (Some(port), Ok(inode)) => Ok(Some(Listener { port, inode })),
        _ => Err(malformed(path, at, "an address and an inode", line)),
    }
}

/// Inodes of the sockets that a process holds open.
fn sockets(proc: &ProcRoot, pid: i32) -> Vec<u64> {
    let folder = proc.process_path(pid, "fd");
    let link = |name: String| pseudo_file::link(&folder.join(name)).ok().flatten();
    let links = pseudo_file::names(&folder).into_iter().filter_map(link);
    links.filter_map(|target| inode(&target)).collect()
}

fn inode(target: &Path) -> Option<u64> {
    let inside = target.to_str()?.strip_prefix("socket:[")?;
    inside.strip_suffix(']')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::net::TcpListener;
    use std::os::unix::fs::symlink;

    const HEAD: &str = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n";

    fn process(folder: &Path, pid: i32, sockets: &[u64], tcp: &str, tcp6: &str) {
        let at = folder.join(pid.to_string());
        fs::create_dir_all(at.join("fd")).unwrap();
        fs::create_dir_all(at.join("net")).unwrap();
        for (name, inode) in sockets.iter().enumerate() {
            let target = format!("socket:[{inode}]");
            symlink(target, at.join("fd").join(name.to_string())).unwrap();
        }
        fs::write(at.join("net/tcp"), format!("{HEAD}{tcp}")).unwrap();
        fs::write(at.join("net/tcp6"), format!("{HEAD}{tcp6}")).unwrap();
    }

    const TCP: &str = "   0: 0100007F:18EB 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1 0000 100 0 0 10 0\n   \
        1: 0100007F:18EB 0100007F:9C40 01 00000000:00000000 00:00000000 00000000     0        0 4712 1 0000 20 4 0 10 -1\n   \
        2: 00000000:0050 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 99 1 0000 100 0 0 10 0\n";
    const TCP6: &str = "   0: 00000000000000000000000000000000:1F90 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4713 1 0000 100 0 0 10 0\n";

    #[test]
    fn ports_are_of_sockets_the_processes_listen_on() {
        let folder = tempfile::tempdir().unwrap();
        process(folder.path(), 7, &[4712, 4713], TCP, TCP6);
        process(folder.path(), 8, &[4711], TCP, TCP6);
        let proc = ProcRoot::at(folder.path());
        assert_eq!(listening_ports(&proc, &[7]).unwrap(), [0x1f90]);
        assert_eq!(listening_ports(&proc, &[7, 8]).unwrap(), [0x18eb, 0x1f90]);
        assert!(listening_ports(&proc, &[9]).unwrap().is_empty());
        assert!(is_listened_on(&proc, 7, 80).unwrap());
        assert!(!is_listened_on(&proc, 7, 81).unwrap());
    }

    #[test]
    fn a_line_that_is_no_socket_is_told_with_its_place() {
        let folder = tempfile::tempdir().unwrap();
        process(folder.path(), 7, &[1], "   0: 0100007F:18EB\n", "");
        let error = listening_ports(&ProcRoot::at(folder.path()), &[7]).unwrap_err();
        assert!(error.to_string().contains("net/tcp"), "{error}");
    }

    #[test]
    fn our_own_socket_is_found() {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = socket.local_addr().unwrap().port();
        let own = i32::try_from(std::process::id()).unwrap();
        let ports = listening_ports(&ProcRoot::default(), &[own]).unwrap();
        assert!(ports.contains(&port), "{ports:?}");
    }
}
