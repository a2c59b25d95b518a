//! What docs/examples holds is run: every model file by the simulator and, where a formula has it,
//! by the formulas; the notebook by Python.

use serde_json::Value;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples")
}

fn sooner(words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sooner"));
    command.args(words).output().unwrap()
}

fn mean(output: &Output, field: &str) -> Option<f64> {
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    document["runs"][0]["all"][field].as_f64()
}

#[test]
fn every_model_file_runs_and_agrees_with_its_formula() {
    let entries = fs::read_dir(folder()).unwrap();
    let mut models: Vec<PathBuf> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "toml"))
        .collect();
    models.sort();
    assert!(models.len() >= 10, "{models:?}");
    let mut solved_count = 0;
    for model in &models {
        let name = model.to_str().unwrap();
        let simulated = sooner(&["sim", name, "--jobs", "200000", "--json"]);
        assert!(simulated.status.success(), "{name}: {simulated:?}");
        let found = mean(&simulated, "mean_response").expect(name);
        let solved = sooner(&["solve", "model", name, "--json"]);
        if !solved.status.success() {
            let said = String::from_utf8_lossy(&solved.stderr);
            assert!(said.contains("there is no formula"), "{name}: {said}");
            continue;
        }
        solved_count += 1;
        let exact = mean(&solved, "mean_response").expect(name);
        assert!(
            (found / exact - 1.0).abs() < 0.2,
            "{name}: {found}, {exact}"
        );
    }
    assert!(solved_count >= 6, "{solved_count} of {}", models.len());
}

#[test]
fn the_notebook_is_valid_and_its_cells_run() {
    let text = fs::read_to_string(folder().join("sooner.ipynb")).unwrap();
    let notebook: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(notebook["nbformat"], 4);
    let cells = notebook["cells"].as_array().unwrap();
    let mut program = String::new();
    for cell in cells {
        assert!(cell["id"].is_string() && cell["metadata"].is_object());
        let source = cell["source"].as_array().unwrap().iter();
        let source: String = source.map(|line| line.as_str().unwrap()).collect();
        match cell["cell_type"].as_str() {
            Some("code") => {
                assert_eq!(cell["outputs"], serde_json::json!([]));
                program += &format!("{source}\n\n");
            }
            kind => assert_eq!(kind, Some("markdown")),
        }
    }
    let program_folder = Path::new(env!("CARGO_BIN_EXE_sooner")).parent().unwrap();
    let path = env::var_os("PATH").unwrap_or_default();
    let paths = [program_folder.to_owned()];
    let paths = paths.into_iter().chain(env::split_paths(&path));
    let mut python = Command::new("python3");
    python.args(["-c", &program]).current_dir(folder());
    python.env("PATH", env::join_paths(paths).unwrap());
    python.env("MPLBACKEND", "Agg");
    let Ok(output) = python.output() else {
        eprintln!("skipped: the_notebook_is_valid_and_its_cells_run: no python3; install it");
        return;
    };
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    assert!(printed.contains("throughput x T"), "{printed}");
}
