//! The table of a check: the requested values, the measured values, the verdict.

use std::fmt::Write;

use super::Figures;

/// One line a figure; times in milliseconds.
pub fn render(figures: &Figures) -> String {
    let mut text = String::new();
    // Writing into a String does not fail.
    let _ = lines(&mut text, figures);
    text
}

fn lines(text: &mut String, figures: &Figures) -> std::fmt::Result {
    writeln!(
        text,
        "rtt ms asked    median       p99       max      sent  returned"
    )?;
    for row in &figures.rtt {
        writeln!(
            text,
            "{:>12}{:>10}{:>10}{:>10}{:>10}{:>10}  {}",
            row.asked_rtt_ms,
            milliseconds(row.median_rtt_ms),
            milliseconds(row.p99_rtt_ms),
            milliseconds(row.max_rtt_ms),
            row.packets_sent,
            row.packets_returned,
            verdict(row.passed)
        )?;
    }
    writeln!(
        text,
        "\nloss % asked  measured   allowed      sent  received  direction"
    )?;
    for row in &figures.loss {
        writeln!(
            text,
            "{:>12}{:>10.3}{:>10}{:>10}{:>10}  {:<9}  {}",
            row.asked_loss * 100.0,
            row.measured_loss * 100.0,
            format!("+-{:.2}", row.allowed_difference * 100.0),
            row.packets_sent,
            row.packets_received,
            row.direction,
            verdict(row.passed)
        )?;
    }
    throughput(text, figures)?;
    for (part, report) in ["rtt", "loss", "throughput"].iter().zip(&figures.emulators) {
        writeln!(
            text,
            "emulator, {part}: released late by {:.0} us in the median, {:.0} us p99, {:.0} us at most{}",
            report.release_late_p50_us,
            report.release_late_p99_us,
            report.release_late_max_us,
            if report.realtime {
                ""
            } else {
                "; no real-time priority"
            }
        )?;
    }
    writeln!(text, "seed {}: {}", figures.seed, verdict(figures.passed))
}

fn throughput(text: &mut String, figures: &Figures) -> std::fmt::Result {
    let row = &figures.throughput;
    writeln!(
        text,
        "\nUDP with rtt {} ms and loss {} %: {:.1} Mbit/s offered, {:.1} delivered, loss {:.2} %, delay {} ms (p99 {}), \
         {:.0} packets/s back: {}",
        row.asked_rtt_ms,
        row.asked_loss * 100.0,
        row.offered_bits_per_sec / 1e6,
        row.delivered_bits_per_sec / 1e6,
        row.measured_loss * 100.0,
        milliseconds(row.median_delay_ms),
        milliseconds(row.p99_delay_ms),
        row.back_packets_per_sec,
        verdict(row.passed)
    )?;
    writeln!(
        text,
        "  sent late by {:.0} us p99; the emulator took {:.2} s of processor a second; {} packets dropped that no path asks for\n",
        row.send_lag_p99_us, row.emulator_cpu_share, row.unaccounted_packets
    )
}

fn milliseconds(ms: Option<f64>) -> String {
    ms.map_or("-".to_owned(), |ms| format!("{ms:.3}"))
}

fn verdict(passed: bool) -> &'static str {
    if passed { "passed" } else { "FAILED" }
}
