(() => {
  const { at, say, count, many, time, uptime, make, rows, head, line, SECONDS_MAX } = live;
  const className = (name) => name || "no class";
  const sum = (list, field) => list.reduce((all, one) => all + one[field], 0);
  const rate = (value) => value === null ? "\u2013" : value >= 99.95 ? count(Math.round(value)) : value.toFixed(1);
  const limitOf = (server) => server.observed_limit_transactions ?? server.limit_transactions;

  // The children of a node, made anew only when their number changes.
  const children = (id, length, fill) => {
    const parent = at(id);
    while (parent.children.length > length) parent.lastElementChild.remove();
    while (parent.children.length < length) fill(parent);
    return parent.children;
  };
  const cells = (id, list, columns) => rows(id, list.length, (row) => {
    head(row).className = "target";
    for (let cell = 1; cell < columns; cell += 1) make("td", "", row);
  });

  // A drawing of lines over the last five minutes, with a line of words above it.
  const SVG = "http://www.w3.org/2000/svg";
  const drawing = (figure, ...classNames) => {
    const words = make("p", "", figure);
    make("span", "", words);
    make("span", "", words);
    const svg = document.createElementNS(SVG, "svg");
    for (const [name, value] of [["viewBox", `0 0 ${SECONDS_MAX - 1} 100`], ["preserveAspectRatio", "none"], ["role", "img"]]) svg.setAttribute(name, value);
    figure.append(svg);
    for (const one of classNames) {
      const path = document.createElementNS(SVG, "path");
      path.setAttribute("class", `line ${one}`);
      svg.append(path);
    }
  };
  const draw = (words, text, most, ...series) => {
    const svg = words.nextElementSibling, [now, top] = words.children;
    const highest = Math.max(0, ...series.flat());
    series.forEach((values, index) => svg.children[index].setAttribute("d", line(values, highest || 1)));
    say(now, text);
    say(top, highest > 0 ? `most ${most(highest)}` : "");
    const label = `${text}, at most ${most(highest > 0 ? highest : 0)} in the last five minutes`;
    if (svg.getAttribute("aria-label") !== label) svg.setAttribute("aria-label", label);
  };
  const lastOf = (values) => values.at(-1) ?? 0;

  const showHeadline = ({ headline, held_up: heldUp, servers }) => {
    say(at("headline"), headline);
    document.title = `${headline} - Sooner gate`;
    const places = servers.map((server) => `${count(server.inside_transactions)} of ${count(limitOf(server))} places in ${server.address}`);
    const taken = `Taken: ${places.join(", ")}.`;
    say(at("meaning"), places.length === 0 ? "No client has requested a database so far." : places.length > 4 ? `${places.length} servers.` : taken);
    const shown = children("held-up", heldUp.length, (parent) => make("p", "", parent));
    heldUp.forEach((words, index) => say(shown[index], words));
  };

  const showTiles = ({ servers, classes, clients }) => {
    const waiting = servers.filter((server) => server.waiting_transactions > 0).length;
    say(at("waiting"), count(sum(servers, "waiting_transactions")));
    say(at("waiting-where"), waiting === 0 ? "none" : `for ${many(waiting, "server")}`);
    say(at("inside"), count(sum(servers, "inside_transactions")));
    say(at("inside-limit"), `of ${count(servers.reduce((all, server) => all + limitOf(server), 0))}`);
    say(at("rate"), rate(sum(classes, "transactions_per_second")));
    say(at("connections"), count(sum(servers, "connections")));
    say(at("connections-limit"), `of ${count(sum(servers, "limit_connections"))}`);
    say(at("clients"), count(clients.idle + clients.waiting + clients.active));
    say(at("clients-active"), `${count(clients.active)} active`);
  };

  const showServers = ({ servers, per_second: { servers: series } }) => {
    at("servers-section").hidden = servers.length === 0;
    const shown = cells("servers", servers, 5);
    servers.forEach((server, index) => {
      const row = shown[index].cells, held = server.kept_connections + server.idle_transactions;
      say(row[0], server.address);
      say(row[1], count(server.waiting_transactions));
      say(row[2], `${count(server.inside_transactions)} of ${count(limitOf(server))}`);
      say(row[3], `${count(server.connections)} of ${count(server.limit_connections)}`);
      say(row[4], count(held));
      row[4].className = held > 0 && server.waiting_transactions > 0 ? "bad" : "";
    });
    const figures = children("server-plots", series.length, (parent) => {
      const figure = make("figure", "", parent);
      make("figcaption", "", figure);
      drawing(figure, "wait", "");
    });
    series.forEach(({ address, waiting_transactions: waiting, inside_transactions: inside }, index) => {
      const [caption, words] = figures[index].children;
      say(caption, address);
      draw(words, `${count(lastOf(waiting))} waiting, ${count(lastOf(inside))} inside`, count, waiting, inside);
    });
  };

  const showClasses = ({ classes, targets }) => {
    const late = new Set(targets.filter((target) => target.is_late).map((target) => target.class));
    const shown = rows("classes", classes.length, (row) => {
      head(row).className = "target";
      for (let cell = 1; cell < 5; cell += 1) make("td", "", row);
      for (let cell = 5; cell < 8; cell += 1) {
        const both = make("td", "", row);
        make("span", "", both);
        make("small", "", both);
      }
    });
    classes.forEach((one, index) => {
      const row = shown[index].cells, limit = one.limit_transactions;
      say(row[0], className(one.name));
      say(row[1], one.priority === null ? "\u2013" : String(one.priority));
      say(row[2], count(one.waiting_clients));
      say(row[3], limit === null ? count(one.inside_transactions) : `${count(one.inside_transactions)} of ${count(limit)}`);
      say(row[4], rate(one.transactions_per_second));
      ["outside", "inside", "response"].forEach((phase, cell) => {
        const [mean, share] = row[5 + cell].children;
        say(mean, time(one[`mean_${phase}_seconds`]));
        say(share, time(one[`p95_${phase}_seconds`]));
      });
      row[7].firstElementChild.className = late.has(one.name) ? "bad" : "";
    });
  };

  const showTargets = ({ targets }) => {
    at("targets-section").hidden = targets.length === 0;
    const shown = cells("targets", targets, 5);
    targets.forEach((target, index) => {
      const row = shown[index].cells;
      say(row[0], className(target.class));
      say(row[1], target.server);
      say(row[2], target.target);
      say(row[3], time(target.target_seconds));
      say(row[4], time(target.achieved_seconds) + (target.is_late ? ", late" : ""));
      row[4].className = target.is_late ? "bad" : "";
    });
  };

  const showPlots = ({ per_second: { classes } }) => {
    const figures = children("class-plots", classes.length, (parent) => {
      const figure = make("figure", "", parent);
      make("figcaption", "", figure);
      drawing(figure, "wait", "");
      drawing(figure, "response");
    });
    classes.forEach((one, index) => {
      const [caption, queue, , response] = figures[index].children;
      const { waiting_clients: waiting, inside_transactions: inside, mean_response_seconds: times } = one;
      const last = times.findLast((value) => value !== null) ?? null;
      say(caption, className(one.name));
      draw(queue, `${count(lastOf(waiting))} waiting, ${count(lastOf(inside))} inside`, count, waiting, inside);
      draw(response, last === null ? "no response" : `response ${time(last)}`, time, times);
    });
  };

  const showWouldWait = ({ is_observing: isObserving, classes }) => {
    const observed = classes.filter((one) => one.would_wait !== null);
    at("would-wait-section").hidden = !isObserving;
    const shown = cells("would-wait", observed, 6);
    observed.forEach(({ name, would_wait: would }, index) => {
      const row = shown[index].cells;
      say(row[0], className(name));
      say(row[1], count(would.transactions_total));
      say(row[2], count(would.would_wait_total));
      say(row[3], time(would.mean_would_wait_seconds));
      say(row[4], time(would.max_would_wait_seconds));
      say(row[5], count(would.would_wait_transactions));
    });
  };

  const showFacts = (status) => {
    const facts = [`Sooner ${status.version}`, `up ${uptime(status.uptime_seconds)}`];
    facts.push(many(sum(status.classes, "transactions_total"), "transaction"));
    say(at("facts"), facts.join(" \u00b7 "));
  };

  live.run("The gate is about to end.", [showHeadline, showTiles, showServers, showClasses, showTargets, showPlots, showWouldWait, showFacts]);
})();
