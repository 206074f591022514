# SPDX-License-Identifier: Apache-2.0
"""deploy/monitoring against a real flagosd and a real Prometheus."""

import http.client
import json
import re
import subprocess
import urllib.parse
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, Served
from support.program import Program
from support.waiting import wait_for

MONITORING = ROOT / "deploy" / "monitoring"
RULES = MONITORING / "flagosd.rules.yml"
BOARD = MONITORING / "flagosd.board.json"
NAME = re.compile(r"\b(?:flagos_\w+|up)\b(?=[{\[ ]|$)")
CONDITIONAL = {
    "flagos_device_temperature_celsius",
    "flagos_device_power_watts",
    "flagos_device_power_limit_watts",
    "flagos_device_memory_occupied_bytes",
    "flagos_device_utilisation_ratio",
    "flagos_device_telemetry_age_seconds",
}
"""Of what a device tells of itself; a CPU does not tell everything."""

JOB = """
    import sys, torch
    x = torch.ones(1000, 1000, device="flagos")
    for _ in range(20):
        x = x + 1
    print(x.sum().item(), flush=True)
    sys.stdin.readline()
    """


def promtool(*arguments: str, text: str = "") -> str:
    done = subprocess.run(
        ["promtool", *arguments], input=text, capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def get(address: str, path: str) -> str:
    connection = http.client.HTTPConnection(address, timeout=10)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        text = response.read().decode()
        assert response.status == 200, text
        return text
    finally:
        connection.close()


def query(address: str, expression: str) -> list[Any]:
    """Its samples now; fails where the expression is none."""
    text = get(address, "/api/v1/query?" + urllib.parse.urlencode({"query": expression}))
    result: list[Any] = json.loads(text)["data"]["result"]
    return result


def board_expressions() -> list[str]:
    board = json.loads(BOARD.read_text())
    expressions = [target["expr"] for panel in board["panels"] for target in panel.get("targets", [])]
    replaced = {"$__rate_interval": "5m", "$instance": ".*"}
    for old, new in replaced.items():
        expressions = [expression.replace(old, new) for expression in expressions]
    assert not any("$" in expression for expression in expressions)
    return expressions


def rule_expressions() -> list[str]:
    return re.findall(r"^ +expr: (.+)$", RULES.read_text(), re.MULTILINE)


def documented() -> set[str]:
    """The names in docs/operations.md, where a short one continues the first of its row."""
    text = (ROOT / "docs" / "operations.md").read_text().partition("## Metrics")[2].partition("\n## ")[0]
    names = set()
    for row in re.findall(r"^\| .+\|$", text, re.MULTILINE)[1:]:
        prefix = ""
        for name in re.findall(r"`(\w+)`", row.split("|")[2]):
            prefix = prefix or "_".join(name.split("_")[:2])
            names.add(name if name.startswith("flagos_") else prefix + name)
    return names


def names_of(page: str) -> set[str]:
    return set(re.findall(r"^# TYPE (\S+)", page, re.MULTILINE))


def test_promtool_finds_nothing_to_complain_of() -> None:
    promtool("check", "config", str(MONITORING / "prometheus.yml"))
    promtool("check", "rules", str(RULES))


def test_each_alert_fires_when_it_should_and_only_then() -> None:
    tests = Path(__file__).with_name("alerts_test.yml")
    promtool("test", "rules", str(tests))
    alerts = set(re.findall(r"alert: (\w+)", RULES.read_text()))
    tested = re.findall(r"alertname: (\w+)\n +exp_alerts:( \[\])?", tests.read_text())
    assert {name for name, silent in tested if not silent} == alerts, "each fires once"
    assert {name for name, silent in tested if silent} == alerts, "and is silent once"


def test_the_page_is_in_order_and_documented(served: Served) -> None:
    with Program(JOB, served.daemon.endpoint) as job:
        job.line()
        wait_for("the session's figures", lambda: "flagos_session_info{" in get(served.target, "/metrics"))
        page = get(served.target, "/metrics")
        job.tell()
        job.finish()
    assert promtool("check", "metrics", text=page) == ""
    assert names_of(page) <= documented()
    assert documented() - names_of(page) <= CONDITIONAL


@pytest.mark.parametrize("source", [board_expressions, rule_expressions])
def test_expressions_parse_and_their_series_exist(prometheus: str, source: Any) -> None:
    wait_for("Prometheus", lambda: is_ready(prometheus), timeout=60)
    expressions = source()
    assert len(expressions) > 10
    for expression in expressions:
        query(prometheus, expression)
        names = set(NAME.findall(expression))
        assert names
        assert names <= documented() | {"up"}, expression


def is_ready(address: str) -> bool:
    try:
        return get(address, "/-/ready") != ""
    except (OSError, AssertionError):
        return False


def test_prometheus_has_what_flagosctl_shows(served: Served, prometheus: str) -> None:
    wait_for("Prometheus", lambda: is_ready(prometheus), timeout=60)
    with Program(JOB, served.daemon.endpoint) as job:
        assert job.line() == "21000000.0"
        (session,) = served.daemon.sessions()
        device = served.daemon.ctl_json("device", "list")["items"][0]
        sid = session["id"]
        expected = {
            f'flagos_session_calls_total{{sid="{sid}"}}': session["calls"],
            f'flagos_session_memory_used_bytes{{sid="{sid}"}}': session["memory_used"],
            f'flagos_session_memory_peak_bytes{{sid="{sid}"}}': session["memory_peak"],
            f'flagos_session_state{{sid="{sid}",state="RUNNING"}}': 1,
            'flagos_device_memory_used_bytes{device="0"}': device["memory_used"],
            'flagos_device_memory_total_bytes{device="0"}': device["memory_total"],
            'flagos_device_sessions{device="1"}': 1,
            'up{job="flagosd"}': 1,
            "flagos_audit_failures_total": 0,
        }

        def scraped() -> dict[str, float]:
            found = {}
            for expression in expected:
                for sample in query(prometheus, expression):
                    found[expression] = float(sample["value"][1])
            return found

        wait_for("the same figures", lambda: scraped() == expected or None, timeout=30)
        owner = query(prometheus, f'flagos_session_info{{sid="{sid}"}}')[0]["metric"]["owner"]
        assert owner == session["owner"]
        job.tell()
        job.finish()
    opened = f'sum(flagos_session_state{{sid="{sid}",state="ENDED"}})'
    wait_for("its end", lambda: [s["value"][1] for s in query(prometheus, opened)] == ["1"], timeout=30)


def test_the_alerts_are_loaded_and_silent(prometheus: str) -> None:
    wait_for("Prometheus", lambda: is_ready(prometheus), timeout=60)
    groups = json.loads(get(prometheus, "/api/v1/rules"))["data"]["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    assert [rule["query"].replace(" ", "") for rule in rules] == [
        e.replace(" ", "") for e in rule_expressions()
    ]
    firing = [rule["name"] for rule in rules if rule["state"] == "firing"]
    assert firing == []
