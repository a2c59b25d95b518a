//! Wide-area paths on one machine: each client gets a round-trip time and a loss rate of its own,
//! between two network namespaces.
//!
//! For kernels without netem, and for the six hosts and the delay and loss setups of the papers'
//! experiments. Two TUN devices of the same name, one where the server's packets come from and one
//! where the clients are; a single thread carries packets between them. [`core`] decides,
//! [`forward`] reads and writes, [`run`] is the process around them, [`check`] the proof that it
//! does what it says. IPv4 only. It delays and loses; limiting a rate is the business of a qdisc on
//! the server's link, and nothing here reorders.
//!
//! What the process that starts `sooner emulate` does, and in which order:
//! 1. makes both namespaces (`ip netns add`) and starts the process, with `--client` for every
//!    address that is to pass. Packets of other addresses are dropped and counted, so that a
//!    forgotten path shows instead of having no delay;
//! 2. reads its standard output up to the line `ready`: now the device (`wan0` unless said
//!    otherwise) exists in both namespaces, is down and has neither address nor route. Messages, if
//!    any, go to standard error;
//! 3. gives the clients' addresses to the device in the client namespace (`ip addr add ADDRESS/32
//!    dev wan0`), brings it up there and in the router namespace, and sets the routes: in the
//!    router namespace the clients' network through `wan0`, in the client namespace the server's.
//!    Where the server is in a third namespace, the router one forwards (`net.ipv4.ip_forward=1`);
//! 4. ends it: SIGTERM, SIGINT, or with `--end-with-stdin` by closing the pipe that is its standard
//!    input, which also happens when the parent is killed. The devices and their routes are gone
//!    with it. With `--json` its last output is one [`report::Report`];
//! 5. looks at [`report::Report::unaccounted_packets`]: when it is not 0, the run did not measure
//!    the requested paths.
//!
//! Half of the round-trip time is added in each direction, on top of what the hosts need
//! themselves.

pub mod check;
pub mod core;
pub mod forward;
pub mod lateness;
pub mod loss;
pub mod packet;
pub mod path;
pub mod report;
pub mod run;
