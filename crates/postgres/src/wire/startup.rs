//! What comes before the first message: a packet without a tag, in which a client asks for
//! encryption, for a cancellation or for a session.

use super::fields::{Fields, Malformed};

/// The longest first packet; what PostgreSQL takes.
pub const FIRST_PACKET_BYTES_MAX: usize = 10_000;
/// The longest key of a cancel request, protocol 3.2.
const SECRET_BYTES_MAX: usize = 256;
const SECRET_BYTES_MIN: usize = 4;
/// How a TLS handshake begins (RFC 8446, 5.1), sent without asking since PostgreSQL 17.
const TLS_HANDSHAKE: u8 = 0x16;

/// The longest name of a user or database, bytes; PostgreSQL ignores what is behind them.
const NAME_BYTES_MAX: usize = 63;

const CANCEL: i32 = 80_877_102;
const ENCRYPT_BY_TLS: i32 = 80_877_103;
const ENCRYPT_BY_GSS: i32 = 80_877_104;

/// A name of a user or database as PostgreSQL reads it, in a first packet as in SQL.
pub fn truncate_name(name: &str) -> &str {
    &name[..name.floor_char_boundary(NAME_BYTES_MAX)]
}

/// A version of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// 3 for every server since 2003.
    pub major: u16,
    /// 0, or 2 from PostgreSQL 18 on.
    pub minor: u16,
}

impl Version {
    /// Keys of four bytes.
    pub const V3_0: Version = Version { major: 3, minor: 0 };
    /// Keys of up to 256 bytes.
    pub const V3_2: Version = Version { major: 3, minor: 2 };

    /// As a number of the protocol.
    pub fn code(self) -> i32 {
        (i32::from(self.major) << 16) | i32::from(self.minor)
    }
}

/// What a client wants first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FirstPacket {
    /// To be told by one byte whether TLS may begin.
    EncryptByTls,
    /// The same for GSSAPI.
    EncryptByGss,
    /// TLS at once; nothing was taken, the handshake's bytes are still there.
    DirectTls,
    /// That what a session does be cancelled.
    Cancel {
        /// The session's number.
        process_id: i32,
        /// The key it was given.
        secret: Vec<u8>,
    },
    /// A session.
    Startup(Startup),
}

/// A session as the client requests it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Startup {
    /// The version that the client would like.
    pub version: Version,
    /// Names and values in the order in which they came, of any bytes but in those of user and
    /// database, which are UTF-8; names beginning with `_pq_.` are extensions of the protocol.
    pub parameters: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Startup {
    /// The last value of a parameter.
    pub fn parameter(&self, name: &str) -> Option<&[u8]> {
        let is_it = |(own, _): &&(Vec<u8>, Vec<u8>)| own == name.as_bytes();
        let of_name = self.parameters.iter().rev().find(is_it);
        of_name.map(|(_, value)| value.as_slice())
    }

    /// The last value of a parameter that is UTF-8; empty where it is not there.
    fn name(&self, parameter: &str) -> Result<&str, Malformed> {
        let name = self.parameter(parameter).unwrap_or_default();
        str::from_utf8(name).map_err(|_| Malformed("the name of a user or database is not UTF-8"))
    }

    /// Who it is, as PostgreSQL reads it.
    pub fn user(&self) -> &str {
        truncate_name(self.name("user").unwrap_or_default())
    }

    /// The database: by default of the user's name.
    pub fn database(&self) -> &str {
        match self.name("database") {
            Ok(name) if !name.is_empty() => truncate_name(name),
            _ => self.user(),
        }
    }

    /// Extensions of the protocol, none of which is known here.
    pub fn unknown_extensions(&self) -> impl Iterator<Item = &[u8]> {
        let names = self.parameters.iter().map(|(name, _)| name.as_slice());
        names.filter(|name| name.starts_with(b"_pq_."))
    }

    /// The packet that asks for it.
    pub fn write(&self, out: &mut Vec<u8>) {
        let at = out.len();
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&self.version.code().to_be_bytes());
        for text in self
            .parameters
            .iter()
            .flat_map(|(name, value)| [name, value])
        {
            out.extend_from_slice(text);
            out.push(0);
        }
        out.push(0);
        let length = (out.len() - at) as i32;
        out[at..at + 4].copy_from_slice(&length.to_be_bytes());
    }
}

/// Why a first packet is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StartupError {
    /// Too short to say anything, or longer than [`FIRST_PACKET_BYTES_MAX`].
    #[error("the startup packet has the length {0}: this is not a PostgreSQL client")]
    Length(i32),
    /// Neither 3 nor a request with a number of its own.
    #[error("protocol {}.{} is not supported; use 3.0 to 3.2", .0.major, .0.minor)]
    Version(Version),
    /// Not what the packet's kind has.
    #[error("the startup packet is malformed: {0}")]
    Malformed(#[from] Malformed),
    /// A user without a name is refused.
    #[error("the startup packet names no user")]
    NoUser,
}

impl StartupError {
    /// The code that a client is told (SQLSTATE).
    pub fn sqlstate(&self) -> &'static str {
        match self {
            Self::NoUser => "28000",
            Self::Version(_) => "0A000",
            Self::Length(_) | Self::Malformed(_) => "08P01",
        }
    }
}

impl FirstPacket {
    /// Reads the packet at the beginning of `bytes`, with how many of them it has; `None` where
    /// more has to come.
    pub fn read(bytes: &[u8]) -> Result<Option<(FirstPacket, usize)>, StartupError> {
        if bytes.first() == Some(&TLS_HANDSHAKE) {
            return Ok(Some((FirstPacket::DirectTls, 0)));
        }
        let Some(length) = bytes.first_chunk::<4>() else {
            return Ok(None);
        };
        let length = i32::from_be_bytes(*length);
        let packet_bytes = usize::try_from(length).unwrap_or(0);
        if !(8..=FIRST_PACKET_BYTES_MAX).contains(&packet_bytes) {
            return Err(StartupError::Length(length));
        }
        let Some(packet) = bytes.get(4..packet_bytes) else {
            return Ok(None);
        };
        let mut fields = Fields(packet);
        let packet = match fields.int32()? {
            CANCEL => cancel(fields)?,
            ENCRYPT_BY_TLS => fields.end().map(|()| FirstPacket::EncryptByTls)?,
            ENCRYPT_BY_GSS => fields.end().map(|()| FirstPacket::EncryptByGss)?,
            code => FirstPacket::Startup(startup(code, fields)?),
        };
        Ok(Some((packet, packet_bytes)))
    }
}

fn cancel(mut fields: Fields<'_>) -> Result<FirstPacket, StartupError> {
    let process_id = fields.int32()?;
    let secret = fields.0;
    if !(SECRET_BYTES_MIN..=SECRET_BYTES_MAX).contains(&secret.len()) {
        return Err(Malformed("a key has 4 to 256 bytes").into());
    }
    Ok(FirstPacket::Cancel {
        process_id,
        secret: secret.to_vec(),
    })
}

fn startup(code: i32, mut fields: Fields<'_>) -> Result<Startup, StartupError> {
    let [major, minor] = [code >> 16, code & 0xffff].map(|half| half as u16);
    let version = Version { major, minor };
    if major != Version::V3_0.major {
        return Err(StartupError::Version(version));
    }
    let mut parameters = Vec::new();
    loop {
        let name = fields.text()?;
        if name.is_empty() {
            break;
        }
        parameters.push((name.to_vec(), fields.text()?.to_vec()));
    }
    // An option without a name would hide what follows it.
    fields
        .end()
        .map_err(|_| Malformed("an option has no name, or something follows the last"))?;
    let startup = Startup {
        version,
        parameters,
    };
    startup.name("database")?;
    match startup.name("user")? {
        "" => Err(StartupError::NoUser),
        _ => Ok(startup),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn packet(code: i32, rest: &[u8]) -> Vec<u8> {
        let length = (8 + rest.len() as i32).to_be_bytes();
        [&length[..], &code.to_be_bytes(), rest].concat()
    }

    fn read(bytes: &[u8]) -> Result<FirstPacket, StartupError> {
        FirstPacket::read(bytes).map(|packet| packet.unwrap().0)
    }

    /// What psql 18 sends, but for the names.
    const PSQL: &[u8] =
        b"user\0ann\0database\0shop\0application_name\0psql\0client_encoding\0UTF8\0\0";

    #[test]
    fn names_end_where_postgresql_truncates_them() {
        let (name, longer) = ("n".repeat(63), "n".repeat(70));
        assert_eq!(truncate_name(&longer), name);
        assert_eq!(truncate_name("ann"), "ann");
        // A letter is not cut in the middle, as in CREATE ROLE.
        assert_eq!(truncate_name(&format!("{}\u{e9}", &name[1..])), &name[1..]);
    }

    #[test]
    fn a_session_has_a_version_a_user_and_a_database() {
        let bytes = packet(0x30002, PSQL);
        let FirstPacket::Startup(startup) = read(&bytes).unwrap() else {
            panic!("no session");
        };
        assert_eq!(startup.version, Version::V3_2);
        assert_eq!((startup.user(), startup.database()), ("ann", "shop"));
        assert_eq!(startup.parameter("client_encoding"), Some(&b"UTF8"[..]));
        let mut written = Vec::new();
        startup.write(&mut written);
        assert_eq!(written, bytes);
    }

    #[test]
    fn the_database_is_the_users_by_default_and_the_last_of_two_values_counts() {
        let bytes = packet(0x30000, b"user\0bob\0user\0ann\0_pq_.x\0on\0\0");
        let FirstPacket::Startup(startup) = read(&bytes).unwrap() else {
            panic!("no session");
        };
        assert_eq!(startup.database(), "ann");
        let extensions: Vec<&[u8]> = startup.unknown_extensions().collect();
        assert_eq!(extensions, [b"_pq_.x"]);
    }

    #[test]
    fn a_parameter_may_have_any_bytes() {
        let bytes = packet(
            0x30000,
            b"user\0ann\0application_name\0caf\xe9\0\xff\0\xfe\0\0",
        );
        let FirstPacket::Startup(startup) = read(&bytes).unwrap() else {
            panic!("no session");
        };
        let name = startup.parameter("application_name");
        assert_eq!(name, Some(&b"caf\xe9"[..]));
        let mut written = Vec::new();
        startup.write(&mut written);
        assert_eq!(written, bytes);
    }

    #[test]
    fn requests_are_told_apart() {
        assert_eq!(
            read(&packet(ENCRYPT_BY_TLS, b"")),
            Ok(FirstPacket::EncryptByTls)
        );
        assert_eq!(
            read(&packet(ENCRYPT_BY_GSS, b"")),
            Ok(FirstPacket::EncryptByGss)
        );
        assert_eq!(read(&[TLS_HANDSHAKE, 3]), Ok(FirstPacket::DirectTls));
        for key_bytes in [4, 32, 256] {
            let rest = [&7_i32.to_be_bytes()[..], &vec![9; key_bytes]].concat();
            let cancel = FirstPacket::Cancel {
                process_id: 7,
                secret: vec![9; key_bytes],
            };
            assert_eq!(read(&packet(CANCEL, &rest)), Ok(cancel));
        }
    }

    #[test]
    fn half_a_packet_is_waited_for() {
        let bytes = packet(0x30000, PSQL);
        for length in 0..bytes.len() {
            assert_eq!(FirstPacket::read(&bytes[..length]), Ok(None), "{length}");
        }
    }

    #[test]
    fn a_mistake_is_said_in_one_line_with_its_code() {
        let said = |bytes: &[u8]| {
            let error = read(bytes).unwrap_err();
            format!("{} {error}", error.sqlstate())
        };
        let cases = [
            (
                packet(0x30000, b"database\0shop\0\0"),
                "28000 the startup packet names no user",
            ),
            (
                packet(0x30000, b"user\0ann\0\0x\0y\0\0"),
                "08P01 the startup packet is malformed: an option has no name",
            ),
            (
                packet(0x30000, b"user\0ann"),
                "08P01 the startup packet is malformed: a text does not end",
            ),
            (
                packet(0x30000, b"user\0\xff\0\0"),
                "08P01 the startup packet is malformed: the name of a user or database is not UTF-8",
            ),
            (
                packet(0x30000, b"user\0ann\0database\0caf\xe9\0\0"),
                "08P01 the startup packet is malformed: the name of a user or database is not UTF-8",
            ),
            (
                packet(0x20000, b"user\0ann\0\0"),
                "0A000 protocol 2.0 is not supported; use 3.0 to 3.2",
            ),
            (
                packet(CANCEL, &[0; 7]),
                "08P01 the startup packet is malformed: a key has 4 to 256 bytes",
            ),
            (
                b"GET / HTTP/1.1\r\n".to_vec(),
                "08P01 the startup packet has the length 1195725856",
            ),
            (vec![0xff; 8], "08P01 the startup packet has the length -1"),
        ];
        for (bytes, beginning) in cases {
            assert!(said(&bytes).starts_with(beginning), "{}", said(&bytes));
        }
    }

    proptest! {
        #[test]
        fn whatever_comes_is_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            if let Ok(Some((_, taken_bytes))) = FirstPacket::read(&bytes) {
                prop_assert!(taken_bytes <= bytes.len());
            }
        }
    }
}
