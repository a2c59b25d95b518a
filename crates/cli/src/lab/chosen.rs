//! Which experiments a command runs, and which of their cases or parts. A case has to be one of one
//! of the experiments that are named, not of each.

use anyhow::{Result, bail, ensure};
use sooner_lab::experiment::Experiment;
use sooner_lab::measure;

/// What the command line names.
#[derive(Clone, Copy)]
pub struct Named<'a> {
    /// Experiments, or their rows.
    pub names: &'a [String],
    /// Cases or parts; none: all.
    pub cases: &'a [String],
}

impl Named<'_> {
    /// Whether this comparison is named.
    pub fn has(&self, comparison: &Experiment) -> bool {
        self.names.iter().any(|name| comparison.is_called(name))
    }

    /// Whether this measurement is.
    pub fn has_measurement(&self, measurement: &measure::Experiment) -> bool {
        self.names.iter().any(|name| measurement.is_called(name))
    }

    /// Refuses names and cases of nothing, before anything is started.
    pub fn check(
        &self,
        comparisons: &[Experiment],
        measurements: &[measure::Experiment],
    ) -> Result<()> {
        for name in self.names {
            let is_known = comparisons.iter().any(|one| one.is_called(name))
                || measurements.iter().any(|one| one.is_called(name));
            ensure!(
                is_known,
                "no experiment and no row is called {name}; `sooner lab list` shows them"
            );
        }
        let comparisons: Vec<_> = comparisons.iter().filter(|one| self.has(one)).collect();
        let measurements = measurements.iter().filter(|one| self.has_measurement(one));
        let measurements: Vec<_> = measurements.collect();
        let is_known = |case: &&String| {
            comparisons.iter().any(|one| one.case(case).is_some())
                || measurements.iter().any(|one| has_part(one, case))
        };
        let Some(unknown) = self.cases.iter().find(|case| !is_known(case)) else {
            return Ok(());
        };
        match (&comparisons[..], &measurements[..]) {
            ([one], []) => bail!(
                "experiment {} has no case {unknown}; its experiment.toml names them",
                one.name
            ),
            ([], [one]) => {
                let parts: Vec<&str> = one.parts.iter().map(|part| part.name.as_str()).collect();
                let parts = parts.join(", ");
                bail!(
                    "experiment {} has no part {unknown}; it has {parts}",
                    one.name
                )
            }
            _ => bail!(
                "none of {} has a case or a part {unknown}; each experiment.toml names its own",
                self.names.join(", ")
            ),
        }
    }

    /// A comparison that is named with the cases that are; none where it has nothing of that.
    pub fn comparison(&self, mut experiment: Experiment, is_quick: bool) -> Option<Experiment> {
        let own = self.own(|case| experiment.case(case).is_some())?;
        experiment
            .cases
            .retain(|case| own.is_empty() || own.contains(&case.name));
        Some(match (is_quick, own.is_empty()) {
            (false, _) => experiment,
            (true, true) => experiment.quick(),
            (true, false) => experiment.short(),
        })
    }

    /// The parts that are named of a measurement that is; none where it has none of them.
    pub fn parts(&self, experiment: &measure::Experiment) -> Option<Vec<String>> {
        self.own(|case| has_part(experiment, case))
    }

    fn own(&self, has: impl Fn(&str) -> bool) -> Option<Vec<String>> {
        let own: Vec<String> = self
            .cases
            .iter()
            .filter(|case| has(case))
            .cloned()
            .collect();
        (self.cases.is_empty() || !own.is_empty()).then_some(own)
    }
}

fn has_part(experiment: &measure::Experiment, name: &str) -> bool {
    experiment.parts.iter().any(|part| part.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn experiment(name: &str, cases: &str) -> Experiment {
        let mut text = "rows = []\nquestion = \"?\"\npublished = \"-\"\nbaseline = \"nginx\"\n\
            [setup]\npeers = [\"nginx\"]\nschedule = \"0.5\"\nseconds = 100\n"
            .to_owned();
        for case in cases.chars() {
            text.push_str(&format!("[[case]]\nname = \"{case}\"\n"));
        }
        Experiment::parse(&text, name, Path::new(name)).expect("right")
    }

    /// The cases of each of two experiments, and how long the first lasts, s.
    fn chosen(cases: &[&str], is_quick: bool) -> (Vec<String>, u64) {
        let names = ["one", "two"].map(String::from);
        let cases: Vec<String> = cases.iter().copied().map(String::from).collect();
        let named = Named {
            names: &names,
            cases: &cases,
        };
        let all = [experiment("one", "abc"), experiment("two", "bd")];
        named.check(&all, &[]).expect("known");
        let chosen = all
            .into_iter()
            .filter_map(|one| named.comparison(one, is_quick));
        let chosen: Vec<Experiment> = chosen.collect();
        let letters =
            |one: &Experiment| -> String { one.cases.iter().map(|case| &case.name[..]).collect() };
        let seconds = chosen[0].cases[0].setup.seconds;
        (chosen.iter().map(letters).collect(), seconds)
    }

    #[test]
    fn a_case_is_of_the_experiments_that_have_it_and_quick_ones_too() {
        assert_eq!(chosen(&["b"], true), (vec!["b".into(), "b".into()], 20));
        assert_eq!(chosen(&["a", "c"], true), (vec!["ac".into()], 20));
        assert_eq!(chosen(&["d"], false), (vec!["d".into()], 100));
        assert_eq!(chosen(&[], true), (vec!["a".into(), "b".into()], 20));
    }

    #[test]
    fn a_case_of_none_is_told() {
        let said = |names: &[&str]| {
            let names: Vec<String> = names.iter().copied().map(String::from).collect();
            let named = Named {
                names: &names,
                cases: &["d".to_owned()],
            };
            let all = [experiment("one", "a"), experiment("two", "b")];
            named.check(&all, &[]).expect_err("no d").to_string()
        };
        assert!(said(&["one"]).contains("experiment one has no case d"));
        assert!(said(&["one", "two"]).contains("none of one, two has a case"));
    }
}
