//! The first inputs of each target, tried without libFuzzer.

use std::fs;
use std::path::Path;

#[test]
fn no_seed_makes_a_target_panic() {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds");
    let mut tried = 0;
    for folder in fs::read_dir(seeds).unwrap() {
        let folder = folder.unwrap();
        let name = folder.file_name().into_string().unwrap();
        assert!(sooner_fuzz::NAMES.contains(&&*name), "no target {name}");
        for seed in fs::read_dir(folder.path()).unwrap() {
            let path = seed.unwrap().path();
            let bytes = fs::read(&path).unwrap();
            println!("{}", path.display());
            _ = sooner_fuzz::run(&name, &bytes);
            tried += 1;
        }
    }
    assert!(tried > sooner_fuzz::NAMES.len());
}
