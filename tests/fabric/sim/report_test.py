#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""report_test.py REPORT.json TRACE.json HEAT_MAP.svg NODES: fails if what report_test.cpp wrote makes no sense.

The run it describes: each of NODES nodes puts 20 000 and 5 000 bytes, in packets of 2048. NODES 0: nothing happened.
"""
import json
import sys
import xml.etree.ElementTree

SVG = "{http://www.w3.org/2000/svg}"


def check_report(path, nodes):
    with open(path, encoding="utf-8") as file:
        report = json.load(file)
    assert report["bytes_out"] == report["bytes_in"] == nodes * 25000, report["bytes_out"]
    assert report["transfers"] == nodes * 2
    assert len(report["engines"]) == nodes
    assert sum(link["packets"] for link in report["links"]) == report["hops"]
    assert sum(link["bytes"] for link in report["links"]) == report["wire_bytes"]
    busy = [link["busy_ns"] for link in report["links"]]
    assert busy == sorted(busy, reverse=True)
    assert all(0 < ns <= report["virtual_ns"] for ns in busy)
    # 10 and 3 packets and two acknowledgements leave each node.
    leaving = [link for link in report["links"] if link["name"].startswith("node ")]
    assert len(leaving) == nodes
    assert all(link["packets"] == 15 for link in leaving)
    return report


def check_trace(path, report):
    with open(path, encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
    spans = [event for event in events if event["ph"] == "X"]
    names = {(event["pid"], event.get("tid")): event["args"]["name"] for event in events if event["ph"] == "M"}
    assert bool(spans) == bool(report["links"])
    for span in spans:
        assert (span["pid"], span["tid"]) in names
        assert 0 <= span["ts"] and (span["ts"] + span["dur"]) * 1000 <= report["virtual_ns"] + 0.001
    assert {name for key, name in names.items() if key[0] == 1 and key[1] is not None} <= {
        link["name"] for link in report["links"]}


def check_heat_map(path, report):
    root = xml.etree.ElementTree.parse(path).getroot()
    assert root.tag == SVG + "svg"
    width, height = float(root.get("width")), float(root.get("height"))
    for rect in root.iter(SVG + "rect"):
        assert float(rect.get("x", 0)) + float(rect.get("width")) <= width + 0.01
        assert float(rect.get("y", 0)) + float(rect.get("height")) <= height
    texts = [text.text for text in root.iter(SVG + "text")]
    assert any(text.startswith("Use of links over virtual time: " + report["topology"]) for text in texts)
    assert "virtual time" in texts and "100 %" in texts
    assert all(link["group"] in texts for link in report["links"])
    # Without links that share a row there is a row for each.
    assert len(list(root.iter(SVG + "title"))) == len(report["links"])


def main():
    report_path, trace_path, heat_map_path, nodes = sys.argv[1:]
    report = check_report(report_path, int(nodes))
    check_trace(trace_path, report)
    check_heat_map(heat_map_path, report)


if __name__ == "__main__":
    main()
