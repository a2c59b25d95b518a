//! Times and sizes in configuration files: a number counts seconds or bytes, a text says its unit,
//! `idle_seconds = "5min"`, `head_bytes = "16KiB"`.

use serde::de::value::{F64Deserializer, I64Deserializer, U64Deserializer};
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer};
use sooner_quantity::{parse_bytes, parse_duration};
use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;
use toml::Spanned;

/// A number that holds seconds or bytes.
pub trait Amount: Sized {
    /// As seconds; the error is what is wrong, in words.
    fn of_time(text: &str, time: Duration) -> Result<Self, String>;
    /// As bytes; the error is what is wrong, in words.
    fn of_bytes(text: &str, bytes: u64) -> Result<Self, String>;
}

/// For the whole numbers, which differ in how far they go.
macro_rules! whole {
    ($($number:ty),*) => {$(
        impl Amount for $number {
            fn of_time(text: &str, time: Duration) -> Result<Self, String> {
                if time.subsec_nanos() > 0 {
                    return Err(format!("`{text}` is not a whole number of seconds; write 1s or more"));
                }
                Self::of_bytes(text, time.as_secs())
            }

            fn of_bytes(text: &str, bytes: u64) -> Result<Self, String> {
                bytes.try_into().map_err(|_| {
                    format!("`{text}` is too much; write at most {}", Self::MAX)
                })
            }
        }
    )*};
}
whole!(u32, u64, usize);

impl Amount for f64 {
    fn of_time(_: &str, time: Duration) -> Result<Self, String> {
        Ok(time.as_secs_f64())
    }

    fn of_bytes(_: &str, bytes: u64) -> Result<Self, String> {
        Ok(bytes as Self)
    }
}

/// What a text is read as.
trait Kind {
    const EXPECTED: &'static str;
    fn read<T: Amount>(text: &str) -> Result<T, String>;
}

struct Time;

impl Kind for Time {
    const EXPECTED: &'static str = "a length of time, such as 30 or \"30s\"";

    fn read<T: Amount>(text: &str) -> Result<T, String> {
        let time = parse_duration(text).map_err(|error| error.to_string())?;
        T::of_time(text, time)
    }
}

struct Bytes;

impl Kind for Bytes {
    const EXPECTED: &'static str = "a number of bytes, such as 16384 or \"16KiB\"";

    fn read<T: Amount>(text: &str) -> Result<T, String> {
        let bytes = parse_bytes(text).map_err(|error| error.to_string())?;
        T::of_bytes(text, bytes)
    }
}

/// Reads a number as serde does, and a text by its unit.
struct Reader<K, T>(PhantomData<(K, T)>);

impl<'de, K: Kind, T: Amount + Deserialize<'de>> Visitor<'de> for Reader<K, T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(K::EXPECTED)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<T, E> {
        T::deserialize(I64Deserializer::new(number))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<T, E> {
        T::deserialize(U64Deserializer::new(number))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<T, E> {
        T::deserialize(F64Deserializer::new(number))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        K::read(text).map_err(E::custom)
    }
}

/// One value, which [`Spanned`] can be around.
struct Read<K, T>(T, PhantomData<K>);

impl<'de, K: Kind, T: Amount + Deserialize<'de>> Deserialize<'de> for Read<K, T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = deserializer.deserialize_any(Reader::<K, T>(PhantomData))?;
        Ok(Self(value, PhantomData))
    }
}

fn unpacked<K, T>(read: Spanned<Read<K, T>>) -> Spanned<T> {
    let span = read.span();
    Spanned::new(span, read.into_inner().0)
}

/// For `#[serde(deserialize_with)]`: a length of time, seconds.
pub fn seconds<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Amount + Deserialize<'de>,
{
    Read::<Time, T>::deserialize(deserializer).map(|read| read.0)
}

/// The same with its place.
pub fn spanned_seconds<'de, D, T>(deserializer: D) -> Result<Spanned<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Amount + Deserialize<'de>,
{
    Spanned::<Read<Time, T>>::deserialize(deserializer).map(unpacked)
}

/// The same of a key that may be left out; it needs `#[serde(default)]` as well.
pub fn some_seconds<'de, D, T>(deserializer: D) -> Result<Option<Spanned<T>>, D::Error>
where
    D: Deserializer<'de>,
    T: Amount + Deserialize<'de>,
{
    spanned_seconds(deserializer).map(Some)
}

/// For `#[serde(deserialize_with)]`: a number of bytes.
pub fn bytes<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Amount + Deserialize<'de>,
{
    Read::<Bytes, T>::deserialize(deserializer).map(|read| read.0)
}

/// The same with its place.
pub fn spanned_bytes<'de, D, T>(deserializer: D) -> Result<Spanned<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Amount + Deserialize<'de>,
{
    Spanned::<Read<Bytes, T>>::deserialize(deserializer).map(unpacked)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read;

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    struct Limits {
        #[serde(deserialize_with = "seconds")]
        grace_seconds: u32,
        #[serde(deserialize_with = "some_seconds")]
        idle_seconds: Option<Spanned<f64>>,
        #[serde(deserialize_with = "bytes")]
        body_bytes: u64,
    }

    fn idle(limits: &Limits) -> Option<f64> {
        limits.idle_seconds.as_ref().map(|value| *value.get_ref())
    }

    #[test]
    fn numbers_and_texts_are_read_alike() {
        let numbers = "grace_seconds = 300\nidle_seconds = 0.5\nbody_bytes = 16384\n";
        let texts = "grace_seconds = \"5min\"\nidle_seconds = \"500ms\"\nbody_bytes = \"16KiB\"\n";
        for text in [numbers, texts] {
            let limits: Limits = read(text).expect(text);
            let values = (limits.grace_seconds, idle(&limits), limits.body_bytes);
            assert_eq!(values, (300, Some(0.5), 16_384), "{text}");
        }
        assert_eq!(read::<Limits>("").map(|limits| idle(&limits)), Ok(None));
        assert_eq!(
            idle(&read("idle_seconds = 2\n").expect("a whole number")),
            Some(2.0)
        );
    }

    #[test]
    fn what_cannot_be_read_is_told_with_key_place_and_a_right_form() {
        for (text, key, said) in [
            (
                "grace_seconds = \"soon\"\n",
                "grace_seconds",
                "`soon` is not a length of time; write for example 120, 2.5s, 500ms, 10m or 1h30m",
            ),
            (
                "grace_seconds = \"1.5s\"\n",
                "grace_seconds",
                "`1.5s` is not a whole number of seconds; write 1s or more",
            ),
            (
                "grace_seconds = -1\n",
                "grace_seconds",
                "the value `-1` does not fit; write a whole number from 0 to 4294967295",
            ),
            (
                "grace_seconds = true\n",
                "grace_seconds",
                "the value `true` does not fit; write a length of time, such as 30 or \"30s\"",
            ),
            (
                "body_bytes = \"16k\"\n",
                "body_bytes",
                "`16k` may mean powers of ten or of two; write 16KiB (1024 bytes each) or 16kB (1000)",
            ),
            (
                "idle_seconds = [1]\n",
                "idle_seconds",
                "a list does not fit; write a length of time, such as 30 or \"30s\"",
            ),
        ] {
            let mistake = read::<Limits>(text).expect_err(text);
            assert_eq!(
                (mistake.key.as_str(), mistake.message.as_str()),
                (key, said)
            );
            assert!(mistake.span.is_some(), "{text}");
        }
    }
}
