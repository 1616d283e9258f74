"""Where a program's CPU time goes, by perf alone: the reference for what doctor says first.

`perf record` samples cpu-clock with stacks, as root. Each sample is of one row: a page fault (and of
what kind), a call that changes the address space, the life of processes, the allocator, another
system call, or the program's own code. Functions of Linux 6.1 to 6.18.
"""

import os
import re
import subprocess
import tempfile
from collections import Counter

HERTZ = 997
FAULT = {"asm_exc_page_fault", "exc_page_fault", "handle_mm_fault", "do_page_fault", "do_mem_abort", "faultin_page"}
# The first kind whose function is in the stack: mm/memory.c, mm/huge_memory.c, mm/shmem.c, mm/filemap.c.
KINDS = {
    "huge": {"do_huge_pmd_anonymous_page", "__do_huge_pmd_anonymous_page", "vma_alloc_anon_folio_pmd", "folio_zero_user", "clear_huge_page"},
    "swap": {"do_swap_page"},
    "copy": {"do_wp_page", "wp_page_copy", "do_cow_fault", "do_huge_pmd_wp_page", "wp_page_reuse"},
    "shared": {"shmem_fault", "shmem_get_folio_gfp", "do_shared_fault"},
    "anon": {"do_anonymous_page"},
    "file": {"do_read_fault", "filemap_map_pages", "filemap_fault", "do_fault"},
}
POPULATE = {"__mm_populate", "populate_vma_page_range", "faultin_page_range", "madvise_populate"}
MEMORY_CALLS = {
    "mmap", "munmap", "brk", "madvise", "process_madvise", "mremap", "mprotect", "pkey_mprotect", "mlock", "mlock2", "munlock",
    "mlockall", "munlockall", "msync", "mincore", "remap_file_pages", "shmat", "shmdt", "shmctl", "mbind", "move_pages",
}
LIVES = {
    "fork": {"kernel_clone", "ret_from_fork", "ret_from_fork_asm", "schedule_tail"},
    "exec": {"do_execveat_common.isra.0", "bprm_execve", "load_elf_binary", "begin_new_exec"},
    "exit": {"do_exit", "do_group_exit", "exit_mmap", "mmput"},
}
# A call's own function, or that which it ends by jumping to.
CALL = re.compile(r"^(?:__(?:x64|arm64|do|se)_sys_(?:new)?|ksys_|vfs_|do_sys_)(\w+?)(?:\.\w+)*$")
# Addresses of the kernel start with set bits; a file that perf does not know is no kernel.
KERNEL = re.compile(r"^(?:ffff|fffe)[0-9a-f]{12}$")
KERNEL_TOP = {"do_syscall_64", "el0_svc", "invoke_syscall"}
ALLOCATOR = re.compile(r"^(_?int_)?(malloc|free|realloc|calloc|memalign|cfree|malloc_consolidate|sysmalloc|systrim|unlink_chunk"
                       r"|tcache_\w+|mi_\w+|_mi_\w+|je_\w+|operator (new|delete)|tc_\w+|__libc_(malloc|free|calloc|realloc)"
                       r"|alloc_perturb|heap_trim|grow_heap|arena_get2)(\.\w+)*(\(.*\))?$")


def measure(program):
    """Shares of the samples by row, with the number of them; None where perf has none of the kernel."""
    if os.geteuid() != 0:
        return None
    with tempfile.TemporaryDirectory(prefix="strangers-") as folder:
        data = os.path.join(folder, "perf.data")
        silent = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        changed = [f"{name}={value}" for name, value in program.env.items()]
        command = ["perf", "record", "-q", "-F", str(HERTZ), "-e", "cpu-clock", "-g", "-o", data, "--", "env", *changed, *program.command]
        subprocess.run(command, check=False, **silent)
        script = ["perf", "script", "-i", data, "-F", "pid,ip,sym,dso"]
        with subprocess.Popen(script, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, errors="replace") as reader:
            return count(reader.stdout)


def count(lines):
    """Rows of what `perf script -F pid,ip,sym,dso` prints: a line with the process, its stack, an empty line."""
    rows, tasks, stack, inside = Counter(), set(), [], False
    for line in lines:
        line = line.strip()
        if not line:
            if inside:
                rows[row(stack)] += 1
            stack, inside = [], False
        elif not inside:
            tasks.add(line)
            inside = True
        else:
            stack.append(_frame(line))
    if inside:
        rows[row(stack)] += 1
    total = sum(rows.values())
    if not total:
        return None
    return {"samples": total, "processes": len(tasks), "rows": {name: round(n / total, 4) for name, n in rows.most_common()}}


def _frame(line):
    """Function of one line of a stack (address, name, file in parentheses), and whether it is the kernel's."""
    words = line.split(None, 1)
    rest = words[1] if len(words) > 1 else ""
    return rest.rpartition(" (")[0].strip(), bool(KERNEL.match(words[0]))


def row(stack):
    """The row of one sample, whose stack is given from the innermost frame outwards."""
    kernel = {name for name, is_kernel in stack if is_kernel}
    if not kernel:
        return "allocator" if stack and ALLOCATOR.match(stack[0][0]) else "own"
    if kernel & POPULATE:
        return "populate"
    if kernel & FAULT:
        return "fault." + next((kind for kind, functions in KINDS.items() if kernel & functions), "other")
    calls = [found[1] for name in kernel if (found := CALL.match(name))]
    for life, functions in LIVES.items():
        if kernel & functions:
            return f"process.{life}"
    for call in calls:
        return f"memory.{call}" if call in MEMORY_CALLS else f"call.{call}"
    return "call.other" if kernel & KERNEL_TOP else "interrupt"
