"""Violations for other programs: SARIF 2.1.0 (OASIS) and JUnit's XML."""

from __future__ import annotations

import json
from typing import IO, Any
from xml.sax.saxutils import escape, quoteattr

from pcapstat.formats.text import visible

LEVELS = {"error": "error", "warning": "warning", "note": "note"}


def sarif(violations: list[dict[str, Any]], rules: list[dict[str, str]], version: str, file: IO[bytes]) -> None:
    """Write a SARIF log; a frame's number stands for the line of the capture."""
    results = [
        {
            "ruleId": row["rule"],
            "level": LEVELS[row["severity"]],
            "message": {"text": f"{row['explanation']} (frame {row['frame']}: -Y '{row['filter']}')"},
            "locations": [{"physicalLocation": {"artifactLocation": {"uri": row["file"]}, "region": {"startLine": max(row["frame"], 1)}}}],
        }
        for row in violations
    ]
    described = [
        {
            "id": rule["id"],
            "shortDescription": {"text": rule["text"]},
            "help": {"text": rule["source"]},
            "defaultConfiguration": {"level": LEVELS[rule["severity"]]},
        }
        for rule in rules
    ]
    driver = {"name": "pcapstat", "version": version, "rules": described}
    log = {
        "version": "2.1.0",
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "runs": [{"tool": {"driver": driver}, "results": results}],
    }
    file.write(json.dumps(log, indent=1, ensure_ascii=False).encode() + b"\n")


def junit(violations: list[dict[str, Any]], rules: list[dict[str, str]], file: IO[bytes]) -> None:
    """Write a test suite with a case a rule, which fails where a message breaks it. XML has no control characters: they are escaped."""
    broken: dict[str, list[dict[str, Any]]] = {}
    for row in violations:
        broken.setdefault(row["rule"], []).append(row)
    lines = ['<?xml version="1.0" encoding="UTF-8"?>']
    lines.append(f'<testsuite name="pcapstat validate" tests="{len(rules)}" failures="{len(broken)}">')
    for rule in rules:
        lines.append(f"<testcase classname={quoteattr(rule['source'])} name={quoteattr(rule['id'] + ': ' + rule['text'])}>")
        rows = broken.get(rule["id"], [])
        if rows:
            told = "\n".join(visible(f"{row['file']} frame {row['frame']}: {row['explanation']}") for row in rows)
            lines.append(
                f"<failure type={quoteattr(rule['severity'])} message={quoteattr(visible(rows[0]['explanation']))}>{escape(told)}</failure>"
            )
        lines.append("</testcase>")
    file.write("\n".join([*lines, "</testsuite>", ""]).encode())
