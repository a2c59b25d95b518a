(() => {
  const { at, say, bytes, bits, count, time, times, uptime, make, bar, widen, rows, head, line } = live;
  const upTo = (most) => most === null ? "more" : `up to ${bytes(most)}`;
  const ofMs = (ms) => time(ms === null ? null : ms / 1000);
  const sum = (list, field) => list.reduce((all, one) => all + one[field], 0);

  const showHeadline = ({ headline, device, ports, uplink }) => {
    say(at("headline"), headline);
    document.title = `${headline} - ${device}`;
    const found = uplink === null ? "" : ` The rate is found: ${uplink.state}, ${uplink.carries_bits_per_sec === null ? "not known" : `carries ${bits(uplink.carries_bits_per_sec)}`}.`;
    say(at("meaning"), `Port ${ports.join(", ")} on ${device}.${found}`);
  };

  const showTiles = (status) => {
    say(at("sent"), bits(8 * (status.per_second.sent_bytes.at(-1) ?? 0)));
    say(at("rate"), status.rate_bits_per_sec === null ? "not limited" : `of ${bits(status.rate_bits_per_sec)}`);
    say(at("backlog"), bytes(sum(status.bands, "backlog_bytes")));
    say(at("under-way"), count(status.under_way));
    say(at("responses"), count(status.responses));
    say(at("sized"), count(status.sized_responses));
    say(at("sized-by-tls"), `${count(status.sized_by_tls)} under TLS`);
  };

  const showTimes = ({ sizes }) => {
    const shown = rows("times", sizes.length, (row) => {
      head(row);
      for (const name of ["", "", "ours", "theirs"]) make("td", name, row);
      const bars = make("td", "bars", row);
      bar(bars, "");
      bar(bars, "fair");
      make("td", "", row);
    });
    sizes.forEach((size, index) => {
      const cells = shown[index].cells;
      const ours = size.compared_mean_response_ms, fair = size.fair_mean_response_ms, most = Math.max(ours, fair);
      const [oursBar, fairBar] = cells[5].querySelectorAll("i");
      say(cells[0], upTo(size.up_to_bytes));
      say(cells[1], count(size.responses));
      say(cells[2], count(size.compared_responses));
      say(cells[3], ofMs(ours));
      say(cells[4], ofMs(fair));
      widen(oursBar, ours / most);
      widen(fairBar, fair / most);
      say(cells[6], ours ? `${times(fair / ours)}\u00a0\u00d7` : "\u2013");
    });
  };

  const showChart = ({ per_second: { sent_bytes: sent } }) => {
    const values = sent.map((value) => 8 * value), highest = Math.max(0, ...values);
    at("chart-line").setAttribute("d", line(values, highest || 1));
    say(at("chart-most"), `most: ${bits(highest)}`);
    say(at("chart-text"), `Throughput of the last five minutes: now ${bits(values.at(-1) ?? 0)}, at most ${bits(highest)}`);
  };

  const showBands = ({ bands }) => {
    const shown = rows("bands", bands.length, (row) => {
      head(row);
      for (let cell = 1; cell < 6; cell += 1) make("td", "", row);
    });
    bands.forEach((band, index) => {
      const cells = shown[index].cells;
      say(cells[0], String(index));
      say(cells[1], upTo(band.up_to_bytes));
      say(cells[2], count(band.flows));
      say(cells[3], bytes(band.backlog_bytes));
      say(cells[4], bytes(band.sent_bytes));
      say(cells[5], count(band.dropped_packets));
    });
  };

  const showDecisions = ({ uplink }) => {
    at("decisions-section").hidden = uplink === null;
    const decisions = uplink === null ? [] : uplink.decisions.slice(-5).reverse();
    const shown = rows("decisions", decisions.length, (row) => {
      head(row).className = "target";
      for (let cell = 1; cell < 4; cell += 1) make("td", "", row);
    });
    decisions.forEach((one, index) => {
      const cells = shown[index].cells;
      say(cells[0], one.why);
      say(cells[1], time(one.ago_s));
      say(cells[2], one.state);
      say(cells[3], one.rate_bits_per_sec === null ? "not limited" : bits(one.rate_bits_per_sec));
    });
  };

  const showFacts = (status) => {
    const facts = [`Sooner ${status.version}`, `up ${uptime(status.uptime_s)}`, `process ${status.pid}`];
    if (status.resent_packets) facts.push(`${count(status.resent_packets)} packets sent again`);
    if (status.lost_events) facts.push(`${count(status.lost_events)} events lost`);
    say(at("facts"), facts.join(" \u00b7 "));
  };

  live.run("It is about to end.", [showHeadline, showTiles, showTimes, showChart, showBands, showDecisions, showFacts]);
})();
