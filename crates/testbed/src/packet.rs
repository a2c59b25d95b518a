//! Packets made by hand, for programs that only look at them: no checksums.

/// A packet from server to client with an Ethernet header.
#[derive(Clone)]
pub struct Packet {
    server_port: u16,
    client_port: u16,
    client_net: u16,
    seq: u32,
    ack: u32,
    flags: u8,
    is_udp: bool,
    is_v6: bool,
    is_tagged: bool,
    is_fragment: bool,
    is_reversed: bool,
    payload: Vec<u8>,
}

const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const ACK: u8 = 16;

impl Packet {
    /// A TCP segment without payload.
    pub fn tcp(server_port: u16, client_port: u16) -> Packet {
        Packet {
            server_port,
            client_port,
            client_net: 0,
            seq: 0,
            ack: 0,
            flags: ACK,
            is_udp: false,
            is_v6: false,
            is_tagged: false,
            is_fragment: false,
            is_reversed: false,
            payload: Vec::new(),
        }
    }

    /// A UDP datagram.
    pub fn udp(server_port: u16, client_port: u16) -> Packet {
        Packet {
            is_udp: true,
            ..Packet::tcp(server_port, client_port)
        }
    }

    /// From another of 65536 networks of clients; IPv4.
    pub fn client_net(self, client_net: u16) -> Packet {
        Packet { client_net, ..self }
    }

    /// With this sequence number.
    pub fn seq(self, seq: u32) -> Packet {
        Packet { seq, ..self }
    }

    /// With this acknowledgement number.
    pub fn ack(self, ack: u32) -> Packet {
        Packet { ack, ..self }
    }

    /// With these bytes.
    pub fn payload(self, payload: &[u8]) -> Packet {
        Packet {
            payload: payload.into(),
            ..self
        }
    }

    /// With SYN.
    pub fn syn(mut self) -> Packet {
        self.flags |= SYN;
        self
    }

    /// With FIN.
    pub fn fin(mut self) -> Packet {
        self.flags |= FIN;
        self
    }

    /// With RST.
    pub fn rst(mut self) -> Packet {
        self.flags |= RST;
        self
    }

    /// By IPv6.
    pub fn v6(self) -> Packet {
        Packet {
            is_v6: true,
            ..self
        }
    }

    /// With a tag of a virtual network (802.1Q).
    pub fn tagged(self) -> Packet {
        Packet {
            is_tagged: true,
            ..self
        }
    }

    /// A later fragment of its datagram.
    pub fn fragment(self) -> Packet {
        Packet {
            is_fragment: true,
            ..self
        }
    }

    /// From the client to the server.
    pub fn reversed(self) -> Packet {
        Packet {
            is_reversed: true,
            ..self
        }
    }

    /// As it is on the wire.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![2; 12];
        if self.is_tagged {
            bytes.extend([0x81, 0x00, 0x00, 0x07]);
        }
        let transport = self.transport();
        if self.is_v6 {
            bytes.extend([0x86, 0xdd]);
            bytes.extend(self.v6_header(transport.len()));
        } else {
            bytes.extend([0x08, 0x00]);
            bytes.extend(self.v4_header(transport.len()));
        }
        bytes.extend(transport);
        bytes
    }

    fn protocol(&self) -> u8 {
        if self.is_udp { 17 } else { 6 }
    }

    fn v4_header(&self, length: usize) -> Vec<u8> {
        let mut header = vec![0x45, 0];
        header.extend((20 + length as u16).to_be_bytes());
        header.extend([0, 1]);
        // What follows is another part of it.
        header.extend([if self.is_fragment { 0x20 } else { 0x40 }, 0]);
        header.extend([64, self.protocol(), 0, 0]);
        let [high, low] = self.client_net.to_be_bytes();
        for address in self.ends([[10, 0, 0, 1], [10, high, low, 2]]) {
            header.extend(address);
        }
        header
    }

    fn v6_header(&self, length: usize) -> Vec<u8> {
        let mut header = vec![0x60, 0, 0, 0];
        header.extend((length as u16).to_be_bytes());
        header.extend([self.protocol(), 64]);
        for last in self.ends([1, 2]) {
            header.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]);
        }
        header
    }

    fn transport(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for port in self.ends([self.server_port, self.client_port]) {
            bytes.extend(port.to_be_bytes());
        }
        if self.is_udp {
            bytes.extend((8 + self.payload.len() as u16).to_be_bytes());
            bytes.extend([0, 0]);
        } else {
            bytes.extend(self.seq.to_be_bytes());
            bytes.extend(self.ack.to_be_bytes());
            bytes.extend([0x50, self.flags, 0xff, 0xff, 0, 0, 0, 0]);
        }
        bytes.extend(&self.payload);
        bytes
    }

    /// Source and target, from the server's and the client's.
    fn ends<T>(&self, [server, client]: [T; 2]) -> [T; 2] {
        if self.is_reversed {
            [client, server]
        } else {
            [server, client]
        }
    }
}
