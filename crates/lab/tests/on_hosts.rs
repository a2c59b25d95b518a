//! Hosts, links and servers in namespaces of the tests' own; as root.

mod hosts;
mod peers;
mod support;
