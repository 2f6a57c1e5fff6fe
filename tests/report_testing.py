"""Pages that zeus writes with --html, for tests."""

import json
import re


def report_in(page):
    """The data of a page, or None where zeus was built without node and wrote plain HTML."""
    data = re.search(r'id="report-data">(.*?)</script>', page, re.DOTALL)
    return json.loads(data[1]) if data else None


def check_page(test, page, title):
    """Checks that a page is a whole report of this title; returns its data, or None if plain."""
    report = report_in(page)
    if report is None:
        test.assertIn(f"<h1>{title}</h1>", page)
        test.assertIn("<svg", page)
        test.assertNotRegex(page, r"<script|<link|src=|url\((?!#)")
    else:
        test.assertEqual(report["title"], title)
        test.assertTrue(any(section["figures"] for section in report["sections"]))
    return report
