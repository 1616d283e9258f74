//! System calls on buffers whose faults raise SIGBUS.
