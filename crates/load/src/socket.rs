//! Client sockets: every option is set before connect(), so that it already holds for the SYN.

use crate::failure::Failure;
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::SocketAddr;
use tokio::net::TcpStream;

/// Options of every socket of a run.
#[derive(Clone, Debug, Default)]
pub struct SocketOptions {
    /// TCP congestion control by the kernel's name (`cubic`, `bbr`); the system's default when
    /// absent. Acts on what this side sends.
    pub congestion_control: Option<String>,
}

/// A socket with its options set, not yet connected: creating it is not part of any response time.
pub struct UnconnectedSocket(Socket);

impl UnconnectedSocket {
    /// Makes a non-blocking TCP socket for `address`'s family; fails without descriptors or with an
    /// unknown congestion control.
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

/// A socket whose SYN is on its way.
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
