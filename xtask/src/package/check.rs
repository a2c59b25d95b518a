//! The step `package` of `cargo xtask test`: the packages are made of the program that the tests
//! use, installed, upgraded, removed and purged in a root of their own, and read by others' tools.

mod root;

use super::content::Content;
use super::{Release, Result, archive, debian, image, target_folder};
use crate::packages;
use crate::process;
use crate::tally::Tally;
use anyhow::Context;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What the tests' program is built for.
const TARGET: &str = "x86_64-unknown-linux-gnu";
/// Of the package that is upgraded.
const OLD_VERSION: &str = "0.0.1-1";
/// What its configurations have at their ends, as if a newer version changed them.
const OLD_END: &str = "# As an older version had it.\n";

/// What is looked at.
struct Made {
    release: Release,
    content: Content,
    folder: PathBuf,
    /// The package of this version, and one of a version before.
    new: PathBuf,
    old: PathBuf,
}

/// Makes and checks the packages.
pub fn check(tally: &mut Tally) -> Result<()> {
    let folder = target_folder().join("package-check");
    fs::create_dir_all(&folder)?;
    let Some(program) = program(&folder)? else {
        tally.step("package: the program", false);
        return Ok(());
    };
    let release = Release::of_checkout(TARGET)?;
    let content = Content::gather(&release, &program, None, &folder);
    // Licences are checked there.
    tally.step("package: contents and licences", content.is_ok());
    let content = content?;
    check_pages(&content, &folder, tally)?;
    check_image(&release, &content, &folder, tally)?;
    if !process::is_installed("dpkg-deb") {
        tally.skip("package: the .deb", "no dpkg-deb; install dpkg");
        return Ok(());
    }
    let [old, new] = [
        (OLD_VERSION, OLD_END),
        (&format!("{}-1", release.version), ""),
    ];
    let pack = |(version, configuration_ends): (&str, &str)| {
        let options = debian::Options {
            version,
            compression: "gzip",
            configuration_ends,
        };
        debian::write(&release, &content, &options, &folder)
    };
    let (old, new) = (pack(old)?, pack(new)?);
    let made = Made {
        release,
        content,
        folder,
        new,
        old,
    };
    check_again(&made, tally)?;
    check_lintian(&made, tally)?;
    check_units(&made, tally)?;
    root::check(&made, tally)
}

/// A copy of the program that the step `build` left for the tests, without its symbols: what is
/// given away takes longer to build than a test may.
fn program(folder: &Path) -> Result<Option<PathBuf>> {
    let built = target_folder().join("debug/sooner");
    if built.exists() {
        println!("packages {}, as it was built last", built.display());
    } else {
        let arguments = ["build", "--package=sooner-cli", "--bin=sooner"];
        if !process::run(&mut process::cargo(&arguments))?.success {
            return Ok(None);
        }
    }
    let program = folder.join("sooner");
    let mut strip = Command::new("strip");
    strip.arg("-o").args([&program, &built]);
    if process::output(&mut strip).is_err() {
        fs::copy(&built, &program).with_context(|| format!("cannot copy {}", built.display()))?;
    }
    Ok(Some(program))
}

/// Manual pages are read without a complaint by the two programs that people read them with.
fn check_pages(content: &Content, folder: &Path, tally: &mut Tally) -> Result<()> {
    let pages = folder.join("man");
    let mut tree = archive::Tree::default();
    for (name, page) in &content.pages {
        tree.add(name, archive::PLAIN, page.clone());
    }
    tree.write(&pages)?;
    let files: Vec<PathBuf> = content.pages.keys().map(|name| pages.join(name)).collect();
    if process::is_installed("mandoc") {
        let mut lint = Command::new("mandoc");
        lint.args(["-Tlint", "-Wstyle"]).args(&files);
        let said = process::run_quietly(&mut lint)?;
        let mut complaints = said.lines;
        complaints.retain(|line| counts(line));
        complaints.iter().for_each(|line| println!("{line}"));
        tally.step_saying(
            "package: mandoc reads the pages",
            complaints.is_empty(),
            &complaints.join("\n"),
        );
    } else {
        tally.skip("package: mandoc", "no mandoc; install mandoc");
    }
    Ok(())
}

/// A program of this machine names pages that are not installed here, which says nothing.
fn counts(line: &str) -> bool {
    !line.contains("referenced manual not found")
}

/// The same files give the same bytes.
fn check_again(made: &Made, tally: &mut Tally) -> Result<()> {
    let before = fs::read(&made.new)?;
    let options = debian::Options {
        version: &format!("{}-1", made.release.version),
        compression: "gzip",
        configuration_ends: "",
    };
    let again = debian::write(&made.release, &made.content, &options, &made.folder)?;
    tally.step(
        "package: the .deb has the same bytes twice",
        before == fs::read(again)?,
    );
    Ok(())
}

fn check_lintian(made: &Made, tally: &mut Tally) -> Result<()> {
    if !process::is_installed("lintian") {
        tally.skip("package: lintian", "no lintian; install lintian");
        return Ok(());
    }
    let mut lintian = Command::new("lintian");
    lintian
        .args([
            "--fail-on",
            "error,warning",
            "--no-cfg",
            "--tag-display-limit",
            "0",
        ])
        .arg(&made.new);
    if packages::is_root() {
        lintian.arg("--allow-root");
    }
    let said = process::run(&mut lintian)?;
    tally.step_saying("package: lintian", said.success, &said.lines.join("\n"));
    Ok(())
}

/// systemd understands the units.
fn check_units(made: &Made, tally: &mut Tally) -> Result<()> {
    if !process::is_installed("systemd-analyze") {
        tally.skip("package: units", "no systemd-analyze; install systemd");
        return Ok(());
    }
    let root = made.folder.join("units");
    let _ = fs::remove_dir_all(&root);
    fs::create_dir_all(&root)?;
    let mut unpack = Command::new("dpkg-deb");
    process::output(unpack.arg("-x").args([&made.new, &root]))?;
    let mut complaints = Vec::new();
    for entry in fs::read_dir(root.join("usr/lib/systemd/system"))? {
        let path = entry?.path();
        let mut verify = Command::new("systemd-analyze");
        verify.args(["verify", "--man=no", "--recursive-errors=no"]);
        // Its program is where this root has it.
        let text = fs::read_to_string(&path)?;
        let program = root.join("usr/bin/sooner").display().to_string();
        fs::write(&path, text.replace("/usr/bin/sooner", &program))?;
        let said = process::run_quietly(verify.arg(&path))?;
        if !said.success || !said.lines.is_empty() {
            let complaint = format!("{}: {}", path.display(), said.lines.join("\n"));
            println!("{complaint}");
            complaints.push(complaint);
        }
    }
    tally.step_saying(
        "package: systemd reads the units",
        complaints.is_empty(),
        &complaints.join("\n"),
    );
    Ok(())
}

/// The image is read by programs of others, and has in it what was put in.
fn check_image(
    release: &Release,
    content: &Content,
    folder: &Path,
    tally: &mut Tally,
) -> Result<()> {
    let layout = folder.join("image");
    let texts = image::Texts {
        third_party: &content.third_party,
        sbom: &content.sbom,
    };
    let bytes = image::archive(release, content.program.clone(), &texts)?;
    let file = folder.join("image.oci.tar");
    fs::write(&file, &bytes)?;
    if process::is_installed("skopeo") {
        let mut inspect = Command::new("skopeo");
        inspect.args(["inspect", "--config"]);
        let said = process::output(inspect.arg(format!("oci-archive:{}", file.display())))?;
        let config: serde_json::Value = serde_json::from_str(&said)?;
        let is_right = config["config"]["User"] == "65532:65532"
            && config["config"]["Entrypoint"][0] == "/usr/bin/sooner";
        tally.step("package: skopeo reads the image", is_right);
    } else {
        tally.skip("package: skopeo", "no skopeo; install skopeo");
    }
    if !process::is_installed("umoci") {
        tally.skip("package: umoci", "no umoci; install umoci");
        return Ok(());
    }
    let _ = fs::remove_dir_all(&layout);
    tar::Archive::new(bytes.as_slice()).unpack(&layout)?;
    let bundle = folder.join("bundle");
    let _ = fs::remove_dir_all(&bundle);
    let mut unpack = Command::new("umoci");
    unpack.args(["unpack", "--rootless", "--image"]);
    unpack.arg(format!("{}:{}", layout.display(), release.version));
    process::output(unpack.arg(&bundle))?;
    let program = fs::read(bundle.join("rootfs/usr/bin/sooner"))?;
    let users = fs::read_to_string(bundle.join("rootfs/etc/passwd"))?;
    let is_right = program == content.program && users.contains(":65532:");
    tally.step("package: umoci unpacks the image", is_right);
    if debian::is_dynamic(&program) {
        println!("the tests' program needs shared libraries: it is not started in the image");
    }
    Ok(())
}
