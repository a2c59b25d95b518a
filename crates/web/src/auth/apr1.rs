//! The MD5 crypt of BSD (`$1$`) and of Apache (`$apr1$`), which differ in their names alone.
//!
//! Poul-Henning Kamp's algorithm of 1994, as httpd has it in `apr_md5_encode`. Weak by now: a
//! thousand rounds are too few. Files with it are everywhere, so it is read; it is not made.

use md5::{Digest, Md5};

/// Bytes of the salt that count.
const SALT_BYTES_MAX: usize = 8;
const ROUNDS: usize = 1000;
const ALPHABET: &[u8; 64] = b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// What follows the salt's dollar sign in the crypt of `password`; `magic` is `$apr1$` or `$1$`.
pub fn crypt(password: &[u8], magic: &str, salt: &[u8]) -> [u8; 22] {
    let salt = &salt[..salt.len().min(SALT_BYTES_MAX)];
    let mut inner = Md5::new();
    for part in [password, salt, password] {
        inner.update(part);
    }
    let inner = inner.finalize();
    let mut outer = Md5::new();
    for part in [password, magic.as_bytes(), salt] {
        outer.update(part);
    }
    let mut left = password.len();
    while left > 0 {
        let taken = left.min(inner.len());
        outer.update(&inner[..taken]);
        left -= taken;
    }
    let mut bits = password.len();
    while bits > 0 {
        match bits & 1 {
            1 => outer.update([0]),
            _ => outer.update(&password[..1]),
        }
        bits >>= 1;
    }
    let mut digest: [u8; 16] = outer.finalize().into();
    for round in 0..ROUNDS {
        let mut next = Md5::new();
        let is_odd = round & 1 == 1;
        if is_odd {
            next.update(password);
        } else {
            next.update(digest);
        }
        if round % 3 != 0 {
            next.update(salt);
        }
        if round % 7 != 0 {
            next.update(password);
        }
        if is_odd {
            next.update(digest);
        } else {
            next.update(password);
        }
        digest = next.finalize().into();
    }
    encoded(&digest)
}

/// In groups of three bytes, the lowest six bits first.
fn encoded(digest: &[u8; 16]) -> [u8; 22] {
    const GROUPS: [[usize; 3]; 5] = [[0, 6, 12], [1, 7, 13], [2, 8, 14], [3, 9, 15], [4, 10, 5]];
    let mut text = [0; 22];
    for (group, characters) in GROUPS.iter().zip(text.chunks_mut(4)) {
        let bits = group
            .iter()
            .fold(0u32, |bits, &at| bits << 8 | u32::from(digest[at]));
        push(bits, characters);
    }
    push(digest[11].into(), &mut text[20..]);
    text
}

fn push(bits: u32, characters: &mut [u8]) {
    let mut bits = bits;
    for character in characters {
        *character = ALPHABET[(bits & 63) as usize];
        bits >>= 6;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_words_give_known_text() {
        // openssl passwd -apr1 -salt / -1 -salt
        for (password, magic, salt, expected) in [
            ("", "$apr1$", "HqJZimcK", "IQazmeMbUgy5goujX/r9x/"),
            ("", "$1$", "HqJZimcK", "bVD.zpwsGTNLxy9vgaoEU/"),
            ("a", "$apr1$", "r31..", "DIZDo4eJfylTwGRT9KzaO/"),
            ("a", "$1$", "r31..", "5nEqMWzDYjeRpy2f4udKI."),
            ("myPassword", "$apr1$", "HqJZimcK", "Jp03GbGvxCFGgw7yN5ISM1"),
            ("myPassword", "$1$", "HqJZimcK", "rubMTcvxgghonnQeY6LoH0"),
            (
                "0123456789abcdef",
                "$apr1$",
                "HqJZimcK",
                "wrsF.8JY.aop4Xebq3tSu/",
            ),
            (
                "0123456789abcdef",
                "$1$",
                "HqJZimcK",
                "3iSlhOKqoIWL6hGC.aWAC1",
            ),
            (
                "0123456789abcdefg",
                "$apr1$",
                "HqJZimcK",
                "xDA2FcRDlRiWj8Nvm4bs2/",
            ),
            (
                "0123456789abcdefg",
                "$1$",
                "HqJZimcK",
                "IWkSgJWsWPn0M8f8gbgfS.",
            ),
            (
                "pässwört-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
                "$apr1$",
                "HqJZimcK",
                "aOjkxxeKbHcpBERIPmx2F/",
            ),
            (
                "pässwört-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
                "$1$",
                "HqJZimcK",
                "m9yOFxEqycUN3Qpk33fxW1",
            ),
        ] {
            let crypted = crypt(password.as_bytes(), magic, salt.as_bytes());
            assert_eq!(std::str::from_utf8(&crypted), Ok(expected), "{password}");
        }
    }
}
