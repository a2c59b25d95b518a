(() => {
  const { at, say, bytes, bits, count, many, time, times, uptime, make, bar, widen, rows, head, SECONDS_MAX } = live;

  const sizeName = (sizes, index) => {
    const to = sizes[index].up_to_bytes, from = index > 0 ? sizes[index - 1].up_to_bytes : null;
    if (to === null) return `over ${bytes(from)}`;
    return from === null ? `up to ${bytes(to)}` : `${bytes(from)} to ${bytes(to)}`;
  };

  const showHeadline = ({ uplink, comparison }) => {
    const policy = uplink.policy.toUpperCase(), sooner = comparison.times_sooner;
    const same = many(comparison.responses, "response");
    let headline, meaning = `Mean response time of the last minute: ${time(comparison.mean_response_seconds)}. An equally shared link would have needed ${time(comparison.mean_fair_response_seconds)} for the same ${same}.`;
    if (uplink.rate_bits_per_sec === null && uplink.found !== null) {
      headline = `${policy}: no limit of the uplink was found yet`;
      meaning = "The uplink's rate is looked for while traffic flows; until clients wait beyond this host, nothing has to wait here.";
    } else if (uplink.rate_bits_per_sec === null) {
      headline = "Responses are not ordered";
      meaning = "No uplink rate is configured, so every response is written as soon as it is there.";
    } else if (sooner === null) {
      headline = `${policy} orders this uplink`;
      meaning = `${same} in the last minute: too few to compare with FAIR.`;
    } else if (uplink.policy === "fair") {
      headline = "FAIR: all responses share the link equally";
    } else if (sooner >= 1.05) {
      headline = `${policy} answers ${times(sooner)} times sooner than FAIR`;
    } else if (sooner >= 0.95) {
      headline = `${policy} answers as soon as FAIR: little has to wait`;
    } else {
      headline = `${policy} answers ${times(1 / sooner)} times later than FAIR`;
    }
    say(at("headline"), headline);
    say(at("meaning"), meaning);
    document.title = `${headline} - Sooner`;
  };

  const showTiles = ({ uplink, connections, per_second }) => {
    const { waiting, sending, busy_share, rate_bits_per_sec, found } = uplink;
    say(at("busy"), busy_share === null ? "\u2013" : `${(busy_share * 100).toFixed(0)}\u00a0%`);
    say(at("rate"), rate_bits_per_sec === null ? (found === null ? "no limit" : "no limit found") : `of ${bits(rate_bits_per_sec)}`);
    say(at("waiting"), count(waiting.jobs));
    say(at("waiting-bytes"), bytes(waiting.bytes));
    say(at("sending"), count(sending.jobs));
    say(at("sending-bytes"), bytes(sending.bytes));
    say(at("requests"), count(per_second.requests.at(-1) ?? 0));
    say(at("throughput"), bits(8 * (per_second.wire_bytes.at(-1) ?? 0)));
    say(at("connections"), count(connections.open));
    say(at("refused"), `${count(connections.refused_total)} refused`);
  };

  const showTimes = ({ sizes, uplink }) => {
    say(at("times").querySelector(".policy"), uplink.policy.toUpperCase());
    const shown = rows("times", sizes.length, (row) => {
      head(row);
      for (const name of ["", "ours", "theirs"]) make("td", name, row);
      const bars = make("td", "bars", row);
      bar(bars, "");
      bar(bars, "fair");
      make("td", "", row);
    });
    sizes.forEach((size, index) => {
      const cells = shown[index].cells;
      const ours = size.mean_compared_response_seconds, fair = size.mean_fair_response_seconds;
      const [oursBar, fairBar] = cells[4].querySelectorAll("i"), most = Math.max(ours, fair);
      say(cells[0], sizeName(sizes, index));
      say(cells[1], count(size.compared));
      say(cells[2], time(ours));
      say(cells[3], time(fair));
      widen(oursBar, ours / most);
      widen(fairBar, fair / most);
      say(cells[5], ours ? `${times(fair / ours)}\u00a0\u00d7` : "\u2013");
    });
  };

  const showQueue = ({ sizes }) => {
    const shown = rows("queue", sizes.length, (row) => {
      head(row);
      for (const name of ["wait", ""]) {
        make("td", "", row);
        bar(make("td", "bars", row), name);
      }
    });
    const most = Math.max(1, ...sizes.map((size) => Math.max(size.waiting.jobs, size.sending.jobs)));
    sizes.forEach((size, index) => {
      const cells = shown[index].cells;
      say(cells[0], sizeName(sizes, index));
      [size.waiting, size.sending].forEach((load, side) => {
        say(cells[1 + 2 * side], load.jobs ? `${count(load.jobs)}, ${bytes(load.bytes)}` : "0");
        widen(cells[2 + 2 * side].querySelector("i"), load.jobs / most);
      });
    });
  };

  const showChart = ({ per_second, uplink }) => {
    const values = per_second.wire_bytes.map((value) => 8 * value);
    const rate = uplink.rate_bits_per_sec, highest = Math.max(1, ...values);
    const top = Math.max(rate ?? 0, highest);
    const height = (value) => (100 - 100 * value / top).toFixed(2);
    const first = SECONDS_MAX - values.length;
    const points = values.map((value, index) => `${first + index} ${height(value)}`);
    at("chart-line").setAttribute("d", points.length ? `M${points.join("L")}` : "");
    at("chart-area").setAttribute("d", points.length ? `M${first} 100L${points.join("L")}L${SECONDS_MAX - 1} 100Z` : "");
    for (const end of ["y1", "y2"]) at("chart-rate").setAttribute(end, height(rate ?? highest));
    const level = at("chart-rate-text");
    say(level, rate === null ? `most: ${bits(highest)}` : `uplink: ${bits(rate)}`);
    level.style.top = `${height(rate ?? highest)}%`;
    say(at("chart-text"), `Throughput of the last five minutes: now ${bits(values.at(-1) ?? 0)}, at most ${bits(highest)}`);
  };

  const showUpstreams = ({ upstreams }) => {
    at("upstreams-section").hidden = upstreams.length === 0;
    const shown = rows("upstreams", upstreams.length, (row) => {
      head(row).className = "target";
      for (let cell = 0; cell < 5; cell += 1) make("td", "", row);
    });
    upstreams.forEach((server, index) => {
      const cells = shown[index].cells, limit = server.requests_inside_max;
      say(cells[0], `${server.upstream}: ${server.server}`);
      say(cells[1], server.state);
      cells[1].className = server.is_up ? "" : "bad";
      say(cells[2], limit === null ? count(server.requests_inside) : `${count(server.requests_inside)} of ${count(limit)}`);
      say(cells[3], count(server.requests_waiting));
      say(cells[4], count(server.requests_total));
      say(cells[5], count(server.failures_total));
    });
  };

  const showClasses = ({ upstream_classes: classes }) => {
    at("classes-section").hidden = classes.length === 0;
    const shown = rows("classes", classes.length, (row) => {
      head(row).className = "target";
      for (let cell = 0; cell < 4; cell += 1) make("td", "", row);
    });
    const optional = (seconds) => seconds === null ? "\u2013" : time(seconds);
    classes.forEach((reading, index) => {
      const cells = shown[index].cells, targets = reading.targets;
      say(cells[0], `${reading.upstream}: ${reading.class || "all others"}`);
      const limit = reading.limit_requests, bounded = () => `, ${count(reading.inside_requests)} of ${count(limit)} inside`;
      say(cells[1], count(reading.requests) + (limit === null ? "" : bounded()));
      say(cells[2], optional(reading.mean_response_seconds));
      say(cells[3], optional(reading.mean_inside_seconds));
      say(cells[4], targets.map((one) => `${one.target} ${optional(one.achieved_seconds)} of ${time(one.target_seconds)}`).join(", "));
      cells[4].className = targets.some((one) => one.achieved_seconds > one.target_seconds) ? "bad" : "";
    });
  };

  const showPredictions = ({ upstream_predictions: predictions }) => {
    at("predictions-section").hidden = predictions.length === 0;
    const shown = rows("predictions", predictions.length, (row) => {
      head(row).className = "target";
      for (let cell = 0; cell < 5; cell += 1) make("td", "", row);
    });
    const percent = (share) => share === null ? "\u2013" : `${(100 * share).toFixed(0)} %`;
    predictions.forEach((reading, index) => {
      const cells = shown[index].cells, waits = reading.mean_waits;
      say(cells[0], reading.upstream);
      say(cells[1], percent(reading.ranked_rightly));
      say(cells[2], percent(reading.ranked_rightly_by_kind));
      ["fifo_seconds", "expected_seconds", "perfect_seconds"].forEach((order, at) => {
        say(cells[3 + at], waits === null ? "\u2013" : time(waits[order]));
      });
    });
  };

  const showSlowest = ({ slowest }) => {
    const shown = rows("slowest", slowest.length, (row) => {
      head(row).className = "target";
      make("td", "", row);
      bar(make("td", "bars", row), "wait", "");
      for (let cell = 0; cell < 4; cell += 1) make("td", "", row);
    });
    const most = slowest.length ? slowest[0].wait_seconds + slowest[0].service_seconds : 1;
    slowest.forEach((slow, index) => {
      const cells = shown[index].cells, [wait, service] = cells[2].querySelectorAll("i");
      say(cells[0], slow.target);
      say(cells[1], time(slow.wait_seconds + slow.service_seconds));
      widen(wait, slow.wait_seconds / most);
      widen(service, slow.service_seconds / most);
      say(cells[3], time(slow.wait_seconds));
      say(cells[4], time(slow.service_seconds));
      say(cells[5], bytes(slow.size_bytes));
      say(cells[6], slow.completed ? String(slow.status) : `${slow.status}, aborted`);
    });
  };

  const showFacts = (status) => {
    const { config, handshakes } = status;
    const facts = [`Sooner ${status.version}`, `up ${uptime(status.uptime_seconds)}`, `${status.uplink.mechanism}`, many(status.requests_total, "response")];
    if (status.aborted_total) facts.push(`${count(status.aborted_total)} aborted`);
    if (handshakes.ok_total + handshakes.failed_total) facts.push(`${many(handshakes.ok_total, "TLS handshake")}, ${count(handshakes.failed_total)} failed`);
    if (config.reloads_failed_total) facts.push(`${many(config.reloads_failed_total, "new configuration")} refused`);
    if (status.log_lines_lost_total) facts.push(`${many(status.log_lines_lost_total, "log line")} lost`);
    if (status.comparison.missed_jobs_total) facts.push(`${many(status.comparison.missed_jobs_total, "response")} too many to compare`);
    say(at("facts"), facts.filter(Boolean).join(" \u00b7 "));
  };

  live.run("The server is about to end.", [showHeadline, showTiles, showTimes, showQueue, showChart, showUpstreams, showClasses, showPredictions, showSlowest, showFacts]);
})();
