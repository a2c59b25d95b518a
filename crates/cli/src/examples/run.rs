//! Examples of what stands before servers and beside them: serve, gate, attach, and `sooner` itself.

use super::Entry;

/// By path; `""` is `sooner` itself.
pub const TABLE: &[Entry] = &[
    (
        "",
        &[
            (
                "sudo sooner advise /var/log/nginx/access.log --uplink 100mbit",
                "Forecast what an order would gain for the traffic of a log on this uplink",
            ),
            (
                "sooner demo",
                "Measure the same requests on a 10 Mbit/s link, without and with an order",
            ),
        ],
    ),
    (
        "attach",
        &[
            (
                "sudo sooner attach web --dev eth0 --uplink auto --observe",
                "Watch a web server's responses without changing anything",
            ),
            (
                "sudo sooner attach remove",
                "Detach everything, and restore what was there before",
            ),
        ],
    ),
    (
        "attach web",
        &[
            (
                "sudo sooner attach web --dev eth0 --uplink 95mbit",
                "Send short responses first on a line of 100 Mbit/s",
            ),
            (
                "sudo sooner attach web --dev eth0 --uplink auto --cgroup nginx.service",
                "Find the uplink's rate while traffic flows; only responses of nginx",
            ),
        ],
    ),
    (
        "attach postgres",
        &[
            (
                "sudo -u postgres sooner attach postgres --explain --for 60s",
                "Report where transactions spend their time, and what an order could gain",
            ),
            (
                "sudo -u postgres sooner attach postgres --config gate.toml --inherit",
                "Give the processor first to the classes that go first in gate.toml",
            ),
        ],
    ),
    (
        "attach cpu",
        &[
            (
                "sudo sooner attach cpu --cgroup php8.2-fpm.service --explain",
                "Watch PHP's workers for 30 s, and report what an order would gain",
            ),
            (
                "sudo sooner attach cpu --port 8000 --share 80",
                "Give the processor first to short requests of the server on port 8000",
            ),
        ],
    ),
    (
        "attach status",
        &[
            ("sudo sooner attach status", "Show what is attached"),
            (
                "sudo sooner attach status --dev eth0 --json",
                "Show what is attached to one device, as JSON",
            ),
        ],
    ),
    (
        "attach top",
        &[
            (
                "sudo sooner attach top --dev eth0",
                "Watch the responses of a device until Ctrl-C",
            ),
            (
                "sudo sooner attach top --prometheus",
                "Print the figures once, as Prometheus reads them",
            ),
        ],
    ),
    (
        "attach remove",
        &[
            (
                "sudo sooner attach remove",
                "Detach everything, and restore what was there before",
            ),
            (
                "sudo sooner attach remove --dev eth0",
                "Detach from one device",
            ),
        ],
    ),
    (
        "gate",
        &[
            (
                "sooner gate --backend 'postgresql:///?host=/run/postgresql' --users users.txt --limit 10",
                "Run ten transactions at a time in the PostgreSQL server of this machine",
            ),
            (
                "sooner gate --config /etc/sooner/gate.toml --check",
                "Check whether a gate would start with this configuration",
            ),
        ],
    ),
    (
        "gate check",
        &[
            (
                "sooner gate check gate.toml --observe 5min",
                "Watch a gate for five minutes, and report which targets it can meet",
            ),
            (
                "sooner gate check gate.toml --observe 60s --gate 127.0.0.1:6432 --user monitor --json",
                "Watch the gate at this address, and print JSON",
            ),
        ],
    ),
    (
        "gate import",
        &[
            (
                "sooner gate import /etc/pgbouncer/pgbouncer.ini > gate.toml",
                "Write a gate.toml that does what PgBouncer does",
            ),
            (
                "sooner gate import pgbouncer.ini | less",
                "Read what is carried over and, in comments, what is not",
            ),
        ],
    ),
    (
        "gate top",
        &[
            (
                "sooner gate top",
                "Watch the gate of this machine until Ctrl-C",
            ),
            (
                "sooner gate top --gate 127.0.0.1:6432 --user monitor --count 1 --json",
                "Print the state of one gate as a line of JSON",
            ),
        ],
    ),
    (
        "serve",
        &[
            (
                "sooner serve /srv/www --listen 0.0.0.0:8080 --uplink 95mbit",
                "Serve a directory, and order the responses on a line of 100 Mbit/s",
            ),
            (
                "sooner serve --config /etc/sooner/sooner.toml --check",
                "Check whether a server would start with this configuration",
            ),
        ],
    ),
    (
        "serve import",
        &[
            (
                "sooner serve import /etc/nginx/nginx.conf > sooner.toml",
                "Write a sooner.toml that does what nginx does",
            ),
            (
                "sooner serve import /etc/nginx/nginx.conf | less",
                "Read what is carried over and, in comments, what is not",
            ),
        ],
    ),
];
