//! The kernel's network counters as text: /proc/net/netstat and /proc/net/snmp, pairs of lines with
//! names and values.

/// The counter of this name in the group that both lines begin with, like `TcpExt:`; none where
/// this kernel has no such counter.
pub fn counter(text: &str, group: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(group));
    let (names, values) = (lines.next()?, lines.next()?);
    let mut pairs = names.split_whitespace().zip(values.split_whitespace());
    let (_, value) = pairs.find(|(named, _)| *named == name)?;
    value.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_and_values_stand_in_two_lines() {
        let text = "TcpExt: A B\nTcpExt: 3 100\nIpExt: A B\nIpExt: 9 -1\n";
        let read = |group, name| counter(text, group, name);
        assert_eq!(read("TcpExt:", "B"), Some(100));
        assert_eq!(read("IpExt:", "A"), Some(9));
        assert_eq!(read("IpExt:", "B"), None, "not a count");
        assert_eq!((read("TcpExt:", "C"), read("Tcp:", "A")), (None, None));
    }

    proptest! {
        #[test]
        fn any_text_is_read(text: String, group: String, name: String) {
            let _ = counter(&text, &group, &name);
        }
    }
}
