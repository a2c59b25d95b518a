//! Client sockets: every option is set before connect(), so that it already holds for the SYN.

use crate::failure::Failure;
use socket2::{Domain, Protocol, Socket, Type};
use sooner_kernel::socket::choose_port_at_connect;
use sooner_workload::wire;
use std::io;
use std::net::{IpAddr, SocketAddr};
use tokio::net::TcpStream;

/// Options of every socket of a run.
#[derive(Clone, Debug, Default)]
pub struct SocketOptions {
    /// TCP congestion control by the kernel's name (`cubic`, `bbr`); the system's default when
    /// absent. Acts on what this side sends.
    pub congestion_control: Option<String>,
    /// Maximum segment size to announce, in bytes, from [`wire::MSS_BYTES_MIN`] to
    /// [`wire::MSS_BYTES_MAX`]; the network device's when absent. Limits the packets of the server.
    pub mss_bytes: Option<u32>,
    /// Address to send from; the system's choice when absent.
    pub source: Option<IpAddr>,
}

impl SocketOptions {
    /// Payload of a full TCP segment from the server, in bytes.
    pub fn segment_bytes(&self) -> u64 {
        wire::segment_bytes(self.mss_bytes.map_or(wire::MSS_BYTES_MAX, u64::from))
    }
}

/// A socket with its options set, not yet connected: creating it is not part of any response time.
pub struct UnconnectedSocket(Socket);

impl UnconnectedSocket {
    /// Makes a non-blocking TCP socket for `address`'s family; fails without descriptors, with an
    /// unknown congestion control, or with a source that is not this host's or of another family.
    pub fn new(address: SocketAddr, options: &SocketOptions) -> io::Result<UnconnectedSocket> {
        let socket = Socket::new(
            Domain::for_address(address),
            Type::STREAM.nonblocking(),
            Some(Protocol::TCP),
        )?;
        socket.set_tcp_nodelay(true)?;
        if let Some(name) = &options.congestion_control {
            socket.set_tcp_congestion(name.as_bytes())?;
        }
        if let Some(mss_bytes) = options.mss_bytes {
            socket.set_tcp_mss(mss_bytes)?;
        }
        if let Some(source) = options.source {
            choose_port_at_connect(&socket)?;
            socket.bind(&SocketAddr::new(source, 0).into())?;
        }
        Ok(UnconnectedSocket(socket))
    }

    /// Sends the SYN and returns at once.
    pub fn connect(self, address: SocketAddr) -> Result<ConnectingSocket, Failure> {
        match self.0.connect(&address.into()) {
            Err(error)
                if error.raw_os_error() != Some(rustix::io::Errno::INPROGRESS.raw_os_error()) =>
            {
                Err(Failure::from_io(&error))
            }
            _ => Ok(ConnectingSocket(self.0.into())),
        }
    }
}

/// A socket with its SYN on the way.
pub struct ConnectingSocket(std::net::TcpStream);

impl ConnectingSocket {
    /// Waits for the handshake's end.
    pub async fn connected(self) -> Result<TcpStream, Failure> {
        let io_failure = |error: io::Error| Failure::from_io(&error);
        let stream = TcpStream::from_std(self.0).map_err(io_failure)?;
        stream.writable().await.map_err(io_failure)?;
        match stream.take_error().map_err(io_failure)? {
            Some(error) => Err(io_failure(error)),
            None => Ok(stream),
        }
    }
}
