//! What one TCP connection still has inside the host, and how the kernel treats it.
//!
//! Costs of a call on the measuring machine: `unsent_bytes` 0.3 us, `in_host_bytes` 0.4 us,
//! `tcp_info` 0.6 us, `set_priority` 0.2 us.

mod tcp_info;

use std::io::{self, IoSlice};
use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::retry_on_intr;
use rustix::net::{SendAncillaryBuffer, SendFlags, sendmsg};
use socket2::SockRef;

use crate::raw;
pub use raw::peers_gone;
pub use tcp_info::TcpInfo;

const SIOCOUTQ: u32 = 0x5411;
const SIOCOUTQNSD: u32 = 0x894B;
const SO_MEMINFO: i32 = 55;
/// Where `SO_MEMINFO` has the bytes allocated for sending.
const MEMINFO_WMEM_ALLOC: usize = 2;
const MEMINFO_BYTES: usize = 36;

/// Reports the socket writable only while fewer than `bytes` wait unsent in it
/// (`TCP_NOTSENT_LOWAT`).
pub fn set_notsent_lowat(fd: impl AsFd, bytes: u32) -> io::Result<()> {
    SockRef::from(&fd).set_tcp_notsent_lowat(bytes)
}

/// Bytes written but not sent for the first time yet (`SIOCOUTQNSD`).
pub fn unsent_bytes(fd: impl AsFd) -> io::Result<u32> {
    raw::ioctl_count::<SIOCOUTQNSD>(fd)
}

/// Bytes written but not acknowledged yet, sent or not (`SIOCOUTQ`).
pub fn unacked_bytes(fd: impl AsFd) -> io::Result<u32> {
    raw::ioctl_count::<SIOCOUTQ>(fd)
}

/// Memory of this socket's packets between TCP and the wire, bytes: more than the payload, 0 when
/// all has left the host.
pub fn in_host_bytes(fd: impl AsFd) -> io::Result<u32> {
    let mut meminfo = [0; MEMINFO_BYTES];
    raw::socket_option(fd, libc::SOL_SOCKET, SO_MEMINFO, &mut meminfo)?;
    let at = MEMINFO_WMEM_ALLOC * 4;
    Ok(u32::from_ne_bytes([
        meminfo[at],
        meminfo[at + 1],
        meminfo[at + 2],
        meminfo[at + 3],
    ]))
}

/// Whether a write would be taken now, or the connection is broken. Where it would not, the kernel
/// remembers that this process wants to write, and tells the socket's epoll when it is; without a
/// call that was refused it would not.
pub fn is_writable(fd: impl AsFd) -> io::Result<bool> {
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let ready_count = poll(&mut [PollFd::new(&fd, PollFlags::OUT)], Some(&now))?;
    Ok(ready_count > 0)
}

/// Writes without waiting what is followed by more at once, so that no packet leaves that has room
/// for it (`MSG_MORE`); how many bytes were taken. `WouldBlock` when none were.
pub fn write_with_more_to_come(fd: impl AsFd, slices: &[IoSlice<'_>]) -> io::Result<usize> {
    let flags = SendFlags::MORE | SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    let nothing_beside = &mut SendAncillaryBuffer::default();
    Ok(retry_on_intr(|| {
        sendmsg(&fd, slices, nothing_beside, flags)
    })?)
}

/// Sets `SO_PRIORITY` of the packets sent from now on; above 6 needs `CAP_NET_ADMIN` or
/// `CAP_NET_RAW`, else permission denied.
pub fn set_priority(fd: impl AsFd, priority: u32) -> io::Result<()> {
    SockRef::from(&fd).set_priority(priority)
}

/// Lets this many bytes of packets wait to be read, beyond the system's limit (`SO_RCVBUFFORCE`);
/// needs `CAP_NET_ADMIN`.
pub fn set_receive_buffer_bytes(fd: impl AsFd, bytes: usize) -> io::Result<()> {
    Ok(rustix::net::sockopt::set_socket_recv_buffer_size_force(
        fd, bytes,
    )?)
}

/// Chooses the congestion control, for instance `cubic`; not found when the kernel lacks it,
/// permission denied when it reserves it.
pub fn set_congestion_control(fd: impl AsFd, name: &str) -> io::Result<()> {
    SockRef::from(&fd).set_tcp_congestion(name.as_bytes())
}

/// Gives the connection up when data stays unacknowledged for `ms` milliseconds; 0 leaves it to the
/// kernel.
pub fn set_user_timeout(fd: impl AsFd, ms: u32) -> io::Result<()> {
    Ok(rustix::net::sockopt::set_tcp_user_timeout(fd, ms)?)
}

/// Lets a socket be bound to an address alone: its port is chosen when it connects, so that one
/// port serves connections to several destinations. Set it before binding to port 0.
pub fn choose_port_at_connect(fd: impl AsFd) -> io::Result<()> {
    raw::set_socket_option(fd, libc::IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT, 1)
}

/// The kernel's view of the connection; fields a kernel does not know are 0.
pub fn tcp_info(fd: impl AsFd) -> io::Result<TcpInfo> {
    let mut bytes = [0; tcp_info::LENGTH_BYTES];
    raw::socket_option(fd, libc::IPPROTO_TCP, libc::TCP_INFO, &mut bytes)?;
    Ok(TcpInfo::from_bytes(&bytes))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use super::*;

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (listener.accept().unwrap().0, client)
    }

    #[test]
    fn what_was_read_by_the_peer_is_no_longer_in_the_host() {
        let (mut server, mut client) = pair();
        server.write_all(&[7; 5000]).unwrap();
        client.read_exact(&mut [0; 5000]).unwrap();
        while unacked_bytes(&server).unwrap() > 0 {
            std::thread::yield_now();
        }
        assert_eq!(unsent_bytes(&server).unwrap(), 0);
        assert!(is_writable(&server).unwrap());
        assert_eq!(in_host_bytes(&server).unwrap(), 0);
        let info = tcp_info(&server).unwrap();
        assert_eq!((info.bytes_sent, info.bytes_acked), (5000, 5000));
        assert!(info.mss_bytes > 500 && info.cwnd_segments > 0 && info.segments_sent > 0);
        assert!(info.min_rtt_us > 0 && info.min_rtt_us < u32::MAX);
        assert!(
            info.delivery_rate_is_app_limited,
            "there was nothing more to send"
        );
    }

    #[test]
    fn what_the_peer_does_not_read_stays() {
        let (mut server, client) = pair();
        server.set_nonblocking(true).unwrap();
        let mut written = 0;
        while let Ok(bytes) = server.write(&[7; 65536]) {
            written += bytes;
        }
        assert!(
            unacked_bytes(&server).unwrap() > 0
                && unacked_bytes(&server).unwrap() as usize <= written
        );
        assert!(unsent_bytes(&server).unwrap() > 0 && !is_writable(&server).unwrap());
        drop(client);
    }

    #[test]
    fn what_is_followed_by_more_waits_for_it() {
        let (mut server, mut client) = pair();
        server.set_nodelay(true).unwrap();
        let slices = [IoSlice::new(b"on"), IoSlice::new(b"e ")];
        assert_eq!(write_with_more_to_come(&server, &slices).unwrap(), 4);
        assert_eq!(unsent_bytes(&server).unwrap(), 4);
        server.write_all(b"packet").unwrap();
        let mut received = [0; 10];
        client.read_exact(&mut received).unwrap();
        assert_eq!(&received, b"one packet");
        assert_eq!(tcp_info(&server).unwrap().data_segments_sent, 1);
    }

    #[test]
    fn options_are_accepted() {
        let (server, _client) = pair();
        set_notsent_lowat(&server, 1).unwrap();
        set_priority(&server, 6).unwrap();
        set_user_timeout(&server, 30_000).unwrap();
        set_congestion_control(&server, "reno").unwrap();
        choose_port_at_connect(&server).unwrap();
        assert_eq!(
            set_congestion_control(&server, "no-such")
                .unwrap_err()
                .kind(),
            io::ErrorKind::NotFound
        );
    }

    #[test]
    fn a_file_is_not_a_socket() {
        let file = std::fs::File::open("/dev/null").unwrap();
        assert!(
            unsent_bytes(&file).is_err()
                && tcp_info(&file).is_err()
                && in_host_bytes(&file).is_err()
        );
    }
}
