//! Python's drivers and what is built on them.

use super::Suite;
use super::pytest::{self, Project};

/// psycopg's own tests: of its second generation, as its source distribution has them. That of the
/// third has none.
pub const PSYCOPG: Suite = Suite {
    name: "psycopg",
    about: "psycopg2's own tests, over libpq; needs postgresql and pip",
    prepare: |folder| pytest::prepare(&PSYCOPG2, folder),
    run: |run| pytest::run(&PSYCOPG2, run),
};

/// asyncpg's own tests: prepared statements, portals, COPY, cancel requests, without libpq.
pub const ASYNCPG: Suite = Suite {
    name: "asyncpg",
    about: "asyncpg's own tests; needs postgresql and pip",
    prepare: |folder| pytest::prepare(&ASYNCPG_TESTS, folder),
    run: |run| pytest::run(&ASYNCPG_TESTS, run),
};

/// SQLAlchemy's suite for dialects and its tests of PostgreSQL's, over psycopg 3.
pub const SQLALCHEMY: Suite = Suite {
    name: "sqlalchemy",
    about: "SQLAlchemy's dialect suite over psycopg 3; needs postgresql and pip",
    prepare: |folder| pytest::prepare(&SQLALCHEMY_TESTS, folder),
    run: |run| pytest::run(&SQLALCHEMY_TESTS, run),
};

const PSYCOPG2: Project = Project {
    source: "psycopg2==2.9.10",
    requirements: &["psycopg2-binary==2.9.10"],
    database: "psycopg2_test",
    setup: &["CREATE EXTENSION hstore"],
    arguments: &["tests"],
    settings: &["max_prepared_transactions=20"],
};

const ASYNCPG_TESTS: Project = Project {
    source: "asyncpg==0.30.0",
    requirements: &["asyncpg==0.30.0", "distro==1.9.0"],
    database: "asyncpg_test",
    setup: &[],
    arguments: &["tests", "--import-mode=importlib"],
    settings: &["jit=off"],
};

const SQLALCHEMY_TESTS: Project = Project {
    source: "sqlalchemy==2.0.58",
    requirements: &["sqlalchemy==2.0.58", "psycopg[binary]==3.2.13", "greenlet"],
    database: "test",
    setup: &[
        "CREATE SCHEMA test_schema",
        "CREATE SCHEMA test_schema_2",
        "CREATE EXTENSION hstore",
        "CREATE EXTENSION citext",
    ],
    arguments: &[
        "test/dialect/postgresql",
        "test/dialect/test_suite.py",
        "--maxfail=100000",
        "--dburi=postgresql+psycopg://postgres@127.0.0.1:PORT/test",
    ],
    settings: &["max_prepared_transactions=20"],
};
