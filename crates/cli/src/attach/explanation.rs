//! What `attach postgres --explain` prints, and its page.

use sooner_attach::postgres::explain::Explanation;
use sooner_attach::postgres::knobs::{Advice, Knob};
use sooner_attach::postgres::part::Part;
use sooner_attach::postgres::rates::CountOf;
use sooner_attach::postgres::row::{Counted, Row};
use sooner_report::columns::aligned;
use sooner_report::number::{NO_VALUE, duration, significant};
use sooner_report::stacked::{Bar, Figure, Page, render};

/// Kinds and waits that the tables show; JSON has all.
const ROWS_MAX: usize = 12;
/// Of a statement that names a row.
const NAME_CHARS: usize = 44;

/// For people: at most 100 columns where there are few classes.
pub fn text(found: &Explanation) -> String {
    let mut text = head(found).join("\n") + "\n";
    if found.classes.is_empty() {
        return text + "no transaction was seen\n";
    }
    text += &format!("\nof each transaction\n{}", by_class(found));
    for (class, rows) in found
        .classes
        .iter()
        .map(|rows| (&rows.row.name, &rows.kinds))
    {
        if !rows.is_empty() {
            text += &format!("\n{}\n{}", class, by_kind(rows));
        }
    }
    text += &format!("\nwith so many in a transaction\n{}", by_active(found));
    text += &format!("\nwaits\n{}", waits(found));
    for advice in &found.advice {
        text += &format!("\n{}\n{}", verdict(advice), gains(advice));
    }
    text
}

fn percent(share: f64) -> String {
    format!("{} %", significant(100.0 * share))
}

fn time(ms: Option<f64>) -> String {
    ms.map_or(NO_VALUE.into(), duration)
}

fn head(found: &Explanation) -> Vec<String> {
    let mut lines = figures(found);
    lines.extend(reservations(found));
    lines
}

fn figures(found: &Explanation) -> Vec<String> {
    let (cost, processors) = (&found.cost, &found.processors);
    let error = |error: Option<f64>| match error {
        Some(error_ms) => format!(" \u{b1} {}", duration(error_ms)),
        None => String::new(),
    };
    vec![
        format!(
            "PostgreSQL {} (process {}) for {} s: {} transactions a second, {} at a time, {}{} each",
            found.version,
            found.pid,
            significant(found.seconds),
            significant(found.all.per_sec),
            significant(found.all.at_a_time),
            time(found.all.mean_ms),
            error(found.all.error_ms),
        ),
        format!(
            "{} processors {} busy, {} of their time for clients' sessions of this server",
            processors.count,
            percent(processors.busy_share),
            percent(processors.sessions_share)
        ),
        format!(
            "{} looks, one in {}: {} of a processor each, and {} of one in the server; {} of the machine's",
            cost.looks,
            duration(cost.interval_ms),
            duration(cost.own_look_ms),
            duration(cost.server_look_ms),
            percent(cost.share)
        ),
    ]
}

/// What a reader has to know before believing the rest.
fn reservations(found: &Explanation) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(why) = &found.ended {
        lines.push(format!(
            "the server ended the session early ({why}): this is what was seen until then"
        ));
    }
    if let (CountOf::Ages, Some(per_sec)) = (found.count_of, found.server_per_sec) {
        lines.push(format!(
            "the server counts {} transactions a second, and clients' sessions show {} by their ages; the report uses these",
            significant(per_sec),
            significant(found.all.per_sec)
        ));
    }
    if found.unread_sessions > 0 {
        lines.push(format!(
            "up to {} sessions at a time could not be watched: raise the limit of open files, or mount /proc without hidepid",
            found.unread_sessions
        ));
    }
    lines
}

fn by_class(found: &Explanation) -> String {
    let classes = found.classes.iter().map(|rows| &rows.row);
    // A single class is all there is.
    let rows: Vec<&Row> = match found.classes.len() {
        1 => vec![&found.all],
        _ => std::iter::once(&found.all).chain(classes).collect(),
    };
    let line = |name: &str, cell: &dyn Fn(&Row) -> String| {
        let cells = rows.iter().map(|row| cell(row));
        std::iter::once(name.to_owned())
            .chain(cells)
            .collect::<Vec<String>>()
    };
    let mut lines = vec![
        line("", &|row| row.name.clone()),
        line("a second", &|row| significant(row.per_sec)),
        line("at a time", &|row| significant(row.at_a_time)),
        line("mean", &|row| time(row.mean_ms)),
    ];
    for part in Part::ALL {
        if rows
            .iter()
            .any(|row| row.parts.iter().any(|own| own.part == part))
        {
            let cell = |row: &Row| match row.parts.iter().find(|own| own.part == part) {
                Some(own) => format!("{}  {}", time(own.ms), percent(own.share)),
                None => NO_VALUE.into(),
            };
            lines.push(line(&format!("  {}", part.name()), &cell));
        }
    }
    aligned(&lines)
}

fn by_kind(rows: &[Row]) -> String {
    let heads = [
        "kind",
        "a second",
        "mean",
        "processor",
        "locks",
        "log",
        "data I/O",
        "client",
        "other",
    ];
    let mut lines = vec![heads.map(String::from)];
    lines.extend(rows.iter().take(ROWS_MAX).map(|row| {
        let processor = row.ms(Part::Running) + row.ms(Part::ProcessorWait);
        let named = [Part::Wal, Part::DataIo, Part::Client].map(|part| row.ms(part));
        let mean_ms = row.mean_ms.unwrap_or(f64::NAN);
        let rest = mean_ms - processor - row.locks_ms() - named.iter().sum::<f64>();
        let [log, data, client] = named;
        let name: String = row.name.chars().take(NAME_CHARS).collect();
        let name = match row.counted {
            Counted::Transactions => name,
            Counted::Statements => format!("statement {name}"),
        };
        let times = [
            mean_ms,
            processor,
            row.locks_ms(),
            log,
            data,
            client,
            rest.max(0.0),
        ];
        let [mean, processor, locks, log, data, client, rest] = times.map(duration);
        [
            name,
            significant(row.per_sec),
            mean,
            processor,
            locks,
            log,
            data,
            client,
            rest,
        ]
    }));
    aligned(&lines)
}

fn by_active(found: &Explanation) -> String {
    let lines: Vec<[String; 3]> = found
        .by_active
        .iter()
        .map(|row| {
            let name = if row.from == row.to {
                row.to.to_string()
            } else {
                format!("{} to {}", row.from, row.to)
            };
            let mut shares = row.shares.clone();
            shares.sort_by(|one, other| other.1.total_cmp(&one.1));
            let words = shares.iter().filter(|(_, share)| *share >= 0.01);
            let words = words.map(|(part, share)| format!("{} {}", part.name(), percent(*share)));
            let words: Vec<String> = words.collect();
            [
                name,
                format!("{} of the time", percent(row.time_share)),
                words.join("; "),
            ]
        })
        .collect();
    aligned(&lines)
}

fn waits(found: &Explanation) -> String {
    let rows = found.waits.iter().take(ROWS_MAX);
    let lines: Vec<[String; 2]> = rows
        .map(|row| [format!("  {}", row.event), duration(row.ms)])
        .collect();
    aligned(&lines)
}

fn verdict(advice: &Advice) -> String {
    let Advice {
        class,
        bottleneck,
        bottleneck_ms,
        ..
    } = advice;
    let gain = |knob: Knob| {
        let mut gains = advice.gains.iter();
        let gain = gains.find(|gain| gain.knob == knob);
        time(gain.and_then(|gain| gain.at_most_ms))
    };
    let place = format!(
        "{class}: most of its time goes to the {bottleneck} ({})",
        duration(*bottleneck_ms)
    );
    match advice.knob {
        Some(knob) => format!(
            "{place}; inside, {} is the knob worth turning: at most {} sooner",
            knob.name(),
            gain(knob)
        ),
        None => format!("{place}; nothing to gain inside"),
    }
}

fn gains(advice: &Advice) -> String {
    let rows = advice.gains.iter();
    let lines: Vec<[String; 2]> = rows
        .map(|gain| {
            [
                format!("  {}", gain.knob.name()),
                match gain.at_most_ms {
                    Some(ms) => format!("at most {} sooner", duration(ms)),
                    None => "not known: no wait for a lock was seen in the lock table".into(),
                },
            ]
        })
        .collect();
    aligned(&lines)
}

/// The same as stacked bars.
pub fn page(found: &Explanation) -> String {
    let amounts = |row: &Row| {
        let at_a_time = |part| {
            let own = row.parts.iter().find(|own| own.part == part);
            own.map_or(0.0, |own| own.at_a_time)
        };
        Part::ALL.map(at_a_time).to_vec()
    };
    let bar = |row: &Row| Bar {
        name: row.name.clone(),
        whole: format!(
            "{}, {} a second",
            time(row.mean_ms),
            significant(row.per_sec)
        ),
        amounts: amounts(row),
    };
    let classes = found.classes.iter().map(|rows| &rows.row);
    let classes = std::iter::once(&found.all).chain(classes);
    let mut figures = vec![Figure {
        heading: "Where transactions spend their time".into(),
        caption: "On average, by class.".into(),
        bars: classes.map(bar).collect(),
    }];
    for rows in found.classes.iter().filter(|rows| !rows.kinds.is_empty()) {
        figures.push(Figure {
            heading: format!("By kind: {}", rows.row.name),
            caption: "What takes most time first.".into(),
            bars: rows.kinds.iter().take(ROWS_MAX).map(bar).collect(),
        });
    }
    let active = found.by_active.iter().map(|row| {
        let share = |part: Part| {
            let mut shares = row.shares.iter();
            shares
                .find(|(own, _)| *own == part)
                .map_or(0.0, |(_, share)| *share)
        };
        Bar {
            name: format!("{} to {}", row.from, row.to),
            whole: format!("{} of the time", percent(row.time_share)),
            amounts: Part::ALL.map(share).to_vec(),
        }
    });
    figures.push(Figure {
        heading: "By the number in a transaction".into(),
        caption: "While so many transactions were under way.".into(),
        bars: active.collect(),
    });
    let mut summary = head(found);
    summary.extend(found.advice.iter().map(verdict));
    render(&Page {
        title: "Where the time goes".into(),
        summary,
        parts: Part::ALL.map(|part| part.name().to_owned()).to_vec(),
        figures,
    })
}
