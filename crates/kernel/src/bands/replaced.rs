//! The configured qdisc that gives way to bands, and what stands inside it.

use super::error::BandsError;
use crate::device::Device;
use crate::netlink::Connection;
use crate::netlink::traffic::QdiscReply;
use crate::qdisc::Handle;

/// Kinds of qdiscs that come back as they were: without classes of an operator's, and with options
/// that the kernel takes as it tells them. A tbf has one class, in which another may stand.
const COME_BACK: [&str; 11] = [
    "cake",
    "fq",
    "fq_codel",
    "fq_pie",
    "codel",
    "pie",
    "sfq",
    "tbf",
    "pfifo",
    "bfifo",
    "pfifo_head_drop",
];
/// The major number of a handle.
const MAJOR: u32 = 0xffff_0000;

/// Whether a configured qdisc of this kind comes back when the bands go.
pub fn comes_back(kind: &str) -> bool {
    COME_BACK.contains(&kind)
}

/// What gives way.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Replaced {
    /// What comes back, from the root down.
    pub come_back: Vec<QdiscReply>,
    /// What stands inside that and does not come back, like `prio 7:`.
    pub lost: Option<String>,
}

/// The configured qdisc of a device, and what stands inside it; nothing where the kernel's own
/// stands there.
pub fn replaced(connection: &mut Connection, device: &Device) -> Result<Replaced, BandsError> {
    let ask = |source| BandsError::kernel("ask about", device, source);
    let root = connection.root_qdisc(device.index).map_err(ask)?;
    let Some(root) = root.filter(|root| root.handle != 0 && comes_back(&root.kind)) else {
        return Ok(Replaced::default());
    };
    let all = connection.qdiscs(device.index).map_err(ask)?;
    Ok(with_what_is_inside(root, &all))
}

fn with_what_is_inside(root: QdiscReply, all: &[QdiscReply]) -> Replaced {
    let mut replaced = Replaced {
        come_back: vec![root],
        lost: None,
    };
    let mut at = 0;
    while let Some(outer) = replaced.come_back.get(at) {
        let major = outer.handle & MAJOR;
        let is_inside = |one: &&QdiscReply| one.parent & MAJOR == major && one.handle & MAJOR > 0;
        // Handles are unique, so that nothing stands inside itself.
        for one in all.iter().filter(is_inside) {
            if comes_back(&one.kind) && replaced.come_back.len() <= all.len() {
                replaced.come_back.push(one.clone());
            } else {
                let handle = Handle(one.handle);
                replaced.lost = Some(format!("{} {handle}", one.kind));
            }
        }
        at += 1;
    }
    replaced
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::traffic::ROOT;

    fn qdisc(kind: &str, handle: u32, parent: u32) -> QdiscReply {
        QdiscReply {
            kind: kind.into(),
            handle: handle << 16,
            parent,
            options: Vec::new(),
        }
    }

    #[test]
    fn what_is_inside_comes_back_from_the_root_down() {
        let root = qdisc("tbf", 7, ROOT);
        let inner = qdisc("bfifo", 9, 0x0008_0001);
        let middle = qdisc("tbf", 8, 0x0007_0001);
        let ingress = qdisc("clsact", 0xffff, 0xffff_fff1);
        let all = [inner, middle, root.clone(), ingress];
        let found = with_what_is_inside(root.clone(), &all);
        let kinds: Vec<u32> = found.come_back.iter().map(|one| one.handle >> 16).collect();
        assert_eq!((kinds, found.lost), (vec![7, 8, 9], None));
        let all = [qdisc("prio", 8, 0x0007_0001), root.clone()];
        let found = with_what_is_inside(root.clone(), &all);
        assert_eq!(found.come_back, [root]);
        assert_eq!(found.lost.unwrap(), "prio 8:");
    }
}
