//! Linux: socket options, timers, devices, bands.
//!
//! Everything Sooner asks of the kernel is asked here, so that the other crates need no `unsafe`
//! and no numbers of the kernel's interface. Calls that a safe wrapper has (rustix, socket2) go
//! through it; the rest are the few functions of `raw`, and `mapping`.
//!
//! | module | what it answers |
//! |---|---|
//! | [`clock`], [`timer`], [`readiness`] | what time it is, and how to sleep until a time or until something can be read |
//! | [`socket`] | what is still inside the host for one connection, and how it is treated |
//! | [`peer`] | which process is at the other end of a socket file's connection |
//! | [`tcp_table`] | the TCP sockets of one port, by state |
//! | [`handshakes`], [`proc_net`] | how many are completed, and how many get no answer; the counters that say so |
//! | [`sealed_file`] | bytes in memory that the kernel sends without copying them |
//! | [`device`], [`qdisc`] | which device sends, and what waits in its queue |
//! | [`tun`] | a device; this process reads and writes its packets (needs `CAP_NET_ADMIN`) |
//! | [`bands`] | eight strict priorities on a device (needs `CAP_NET_ADMIN`) |
//! | [`classifier`] | programs that find the band of every packet of servers that know nothing of it (needs `CAP_BPF` too) |
//! | [`place`] | which process is attached to a device |
//! | [`workers`] | programs that watch what the workers of a server do (needs `CAP_BPF` and `CAP_PERFMON`) |
//! | [`initial_timeout`] | when a SYN is sent again first, for one control group |
//! | [`capability`], [`probe`] | what this process may do |
//! | [`netns`], [`descriptors`], [`process`], [`process_table`], [`scheduling`], [`signals`] | the process and its surroundings |
//! | [`priority`] | other processes' scheduling |
//! | [`module`] | modules of the kernel (needs `CAP_SYS_MODULE`) |
//! | [`activation`], [`privilege`] | sockets from a service manager, and how to become another user |

pub mod activation;
pub mod bands;
pub mod capability;
pub mod classifier;
pub mod clock;
pub mod descriptors;
pub mod device;
pub mod handshakes;
pub mod initial_timeout;
pub mod module;
pub mod netns;
pub mod peer;
pub mod place;
pub mod priority;
pub mod privilege;
pub mod probe;
pub mod proc_net;
pub mod process;
pub mod process_table;
pub mod qdisc;
pub mod readiness;
pub mod scheduling;
pub mod sealed_file;
pub mod signals;
pub mod socket;
pub mod tcp_table;
pub mod timer;
pub mod tun;
pub mod workers;

mod mapping;
mod netlink;
mod raw;
mod shared_words;
