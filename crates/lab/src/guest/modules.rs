//! The modules that links, queues and servers need in a guest, which has no program that loads them.

use std::fs::{self, File};
use std::path::Path;

use sooner_kernel::module;

/// What is loaded where it is a module. A kernel that has one of them built in has no file of it.
const WANTED: [&str; 25] = [
    "veth",
    "tun",
    "ifb",
    "sch_htb",
    "sch_tbf",
    "sch_prio",
    "sch_ingress",
    "sch_netem",
    "sch_cake",
    "sch_fq_codel",
    "sch_fq",
    "sch_sfq",
    "sch_codel",
    "sch_pie",
    "cls_bpf",
    "cls_u32",
    "cls_fw",
    "cls_flower",
    "cls_matchall",
    "act_mirred",
    "nf_tables",
    "nft_ct",
    "tcp_bbr",
    "tls",
    "tcp_vegas",
];

/// Loads them from the folder of this kernel's version. What cannot be loaded is missed by what
/// needs it, which says so.
pub fn load(folder: &Path) {
    let Ok(list) = fs::read_to_string(folder.join("modules.dep")) else {
        return;
    };
    for path in wanted(&list) {
        if let Ok(file) = File::open(folder.join(path)) {
            let _ = module::load(&file);
        }
    }
}

/// The files to load, in order, from the text of modules.dep: `FILE: WHAT IT NEEDS`, where what is
/// needed first stands last.
fn wanted(list: &str) -> Vec<&str> {
    let named = |line: &&str, name: &str| {
        let file = line.split(':').next().unwrap_or_default();
        let own = Path::new(file)
            .file_name()
            .unwrap_or_default()
            .to_string_lossy();
        own.split('.')
            .next()
            .is_some_and(|own| own.replace('-', "_") == name)
    };
    let mut files: Vec<&str> = Vec::new();
    for name in WANTED {
        let Some(line) = list.lines().find(|line| named(line, name)) else {
            continue;
        };
        let (file, needs) = line.split_once(':').unwrap_or((line, ""));
        for path in needs.split_whitespace().rev().chain([file]) {
            if !files.contains(&path) {
                files.push(path);
            }
        }
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_module_needs_comes_first_and_once() {
        let list = "net/nft-ct.ko: net/nf_tables.ko net/nf_conntrack.ko net/base.ko\n\
            drivers/veth.ko:\nnet/nf_tables.ko: net/base.ko\nother.ko:\n";
        let files = wanted(list);
        assert_eq!(
            files,
            [
                "drivers/veth.ko",
                "net/base.ko",
                "net/nf_tables.ko",
                "net/nf_conntrack.ko",
                "net/nft-ct.ko"
            ]
        );
    }
}
