"""A plugin of pytest: writes a line of JSON as each test begins and as it ends.

SUITES_OUTCOMES names the file. Tests that have ended there are not run again, so that a run that
was ended can go on. SUITES_ONLY may name a file with the tests to run, one on a line.
"""

import json
import os

import pytest

_STATES = {}


def _lines(name):
    path = os.environ.get(name)
    if path is None or not os.path.exists(path):
        return None
    with open(path, encoding="utf-8") as file:
        return file.read().splitlines()


def _write(**line):
    with open(os.environ["SUITES_OUTCOMES"], "a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_collection_modifyitems(config, items):
    yield
    done = {json.loads(line).get("ended") for line in _lines("SUITES_OUTCOMES") or ()}
    only = _lines("SUITES_ONLY")
    items[:] = [
        item
        for item in items
        if item.nodeid not in done and (only is None or item.nodeid in only)
    ]


def pytest_runtest_logstart(nodeid, location):
    _STATES[nodeid] = ("passed", "")
    _write(begun=nodeid)


def pytest_runtest_logreport(report):
    outcome, said = _STATES[report.nodeid]
    if report.failed and outcome in ("passed", "xfailed"):
        outcome = "failed" if report.when == "call" else "error"
        said = _said(report)
    elif report.skipped:
        outcome = "xfailed" if hasattr(report, "wasxfail") else "skipped"
        said = _said(report)
    elif report.passed and hasattr(report, "wasxfail"):
        outcome = "xpassed"
    _STATES[report.nodeid] = (outcome, said)


def pytest_runtest_logfinish(nodeid, location):
    outcome, said = _STATES.pop(nodeid)
    if said.startswith("Failed: Timeout"):
        outcome = "hang"
    _write(ended=nodeid, outcome=outcome, said=said)


def _said(report):
    if isinstance(report.longrepr, tuple):
        return report.longrepr[2]
    crash = getattr(report.longrepr, "reprcrash", None)
    text = crash.message if crash else str(report.longrepr)
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        return ""
    return (lines[0] if crash else lines[-1])[:400]
