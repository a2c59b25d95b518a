//! Shell completions of what help shows: clap_complete offers hidden commands and flags too. For
//! bash it offers flags where an argument is a file; there bash is left to offer files.

use anyhow::Context;
use clap::builder::ValueHint;
use clap::{Arg, ArgGroup, Command};
use clap_complete::Shell;
use std::fs;
use std::path::Path;

/// Where bash offers flags: behind a minus sign, and at the place of the first argument.
const FLAGS_AT_FIRST: &str = "if [[ ${cur} == -* || ${COMP_CWORD} -eq ";
/// Where it offers them behind other arguments.
const FLAGS_BEHIND: &str =
    "            esac\n            COMPREPLY=( $(compgen -W \"${opts}\" -- \"${cur}\") )\n";

/// Writes the completions of each shell.
pub fn write(command: &Command, folder: &Path) -> anyhow::Result<()> {
    let mut shown = shown(command);
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        let failed = || format!("cannot write completions for {shell}");
        let path = clap_complete::generate_to(shell, &mut shown, "sooner", folder);
        let path = path.with_context(failed)?;
        if shell == Shell::Bash {
            let text = fs::read_to_string(&path).with_context(failed)?;
            fs::write(&path, with_files(text, &shown, "sooner")).with_context(failed)?;
        }
    }
    Ok(())
}

/// The text for bash, with files where arguments of this command, or of one below it, are files:
/// bash offers them itself where a completion offers nothing.
fn with_files(text: String, command: &Command, name: &str) -> String {
    let mut text = text;
    for inner in command.get_subcommands() {
        let name = format!(
            "{name}__subcmd__{}",
            inner.get_name().replace('-', "__subcmd__")
        );
        text = with_files(text, inner, &name);
    }
    if command.has_subcommands() || !command.get_positionals().any(is_file) {
        return text;
    }
    let label = format!("\n        {name})\n");
    let Some((before, behind)) = text.split_once(&label) else {
        return text;
    };
    let Some((own, behind)) = behind.split_once("\n            ;;\n") else {
        return text;
    };
    let Some((flags, rest)) = own.split_once(FLAGS_AT_FIRST) else {
        return text;
    };
    let rest = rest.trim_start_matches(|digit: char| digit.is_ascii_digit());
    let rest = rest.replace(FLAGS_BEHIND, "            esac\n");
    format!("{before}{label}{flags}if [[ ${{cur}} == -*{rest}\n            ;;\n{behind}")
}

/// Whether it is a file, and none of a few values beside.
fn is_file(arg: &Arg) -> bool {
    let hint = arg.get_value_hint();
    matches!(hint, ValueHint::FilePath | ValueHint::DirPath) && arg.get_possible_values().is_empty()
}

/// The same command without what is hidden. Only what completions are made from is kept.
fn shown(command: &Command) -> Command {
    let args = command.get_arguments().filter(|arg| !arg.is_hide_set());
    let args: Vec<_> = args.cloned().collect();
    let is_shown = |id: &&clap::Id| args.iter().any(|arg| arg.get_id() == *id);
    let groups: Vec<ArgGroup> = command
        .get_groups()
        .map(|group| {
            ArgGroup::new(group.get_id().clone())
                .args(group.get_args().filter(is_shown).cloned())
                .required(group.is_required_set())
                .multiple(group.clone().is_multiple())
        })
        .collect();
    let subcommands = command.get_subcommands();
    let subcommands = subcommands.filter(|inner| !inner.is_hide_set()).map(shown);
    let mut kept = Command::new(kept_name(command.get_name()))
        .subcommand_required(command.is_subcommand_required_set())
        .visible_aliases(command.get_visible_aliases().map(kept_name))
        .subcommands(subcommands)
        .groups(groups);
    if let Some(about) = command.get_about() {
        kept = kept.about(about.clone());
    }
    if let Some(version) = command.get_version() {
        kept = kept.version(kept_name(version));
    }
    kept.args(args)
}

/// A name as clap takes it: until the end of the program, which follows soon.
fn kept_name(name: &str) -> &'static str {
    name.to_owned().leak()
}
