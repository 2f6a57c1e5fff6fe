import assert from "node:assert/strict";
import { test } from "node:test";
import { sentenceOf } from "../src/app/api";
import { EventParser } from "../src/app/event_parser";
import { changeWithSigma, energyText, numberText, percentWithSigma, powerText, timeText, withSigma } from "../src/app/quantity";
import { linkTo, match, placeOf } from "../src/app/router";
import { agoText } from "../src/app/time";

// The cases of zeus/base/quantity_text_test.cc.
test("a value and its sigma have one prefix and the digits that sigma leaves", () => {
  assert.equal(withSigma(708.2, 22.4, "J"), "708 ± 22 J");
  assert.equal(withSigma(61234, 14321, "J"), "61 ± 14 kJ");
  assert.equal(withSigma(0.0042131, 0.0000121, "s"), "4.213 ± 0.012 ms");
  assert.equal(withSigma(5, 0, "J"), "5.00 J");
  assert.equal(withSigma(undefined, 1, "J"), "–");
  assert.equal(withSigma(Number.NaN, 1, "J"), "–");
  assert.equal(withSigma(1234, 56, "/s"), "1234 ± 56 /s");
  assert.equal(energyText(4.56e6), "4.56 MJ");
  assert.equal(numberText(812, "J"), "812 J");
  assert.equal(powerText(231.42), "231.4 W");
  assert.equal(powerText(1041.9), "1042 W");
  assert.equal(timeText(8.4), "8.40 s");
  assert.equal(timeText(738, 24), "12.30 ± 0.40 min");
  assert.equal(timeText(4.1 * 3600, 72), "4.100 ± 0.020 h");
  assert.equal(percentWithSigma(17.2, 0.9), "17.20 ± 0.90 %");
  assert.equal(changeWithSigma(-12.3, 0.4), "-12.30 ± 0.40 %");
  assert.equal(changeWithSigma(-0, 0.4), "+0.00 ± 0.40 %");
});

test("events are found wherever the text is cut", () => {
  const text =
    ": ping\n\nid: a-1\nevent: reading\ndata: {\"x\":1}\n\ndata: one\r\ndata: two\r\n\r\nevent: none\n\nid: a-2\ndata\n\n";
  for (let size = 1; size <= text.length; ++size) {
    const parser = new EventParser();
    const events = [];
    for (let at = 0; at < text.length; at += size) events.push(...parser.feed(text.slice(at, at + size)));
    assert.deepEqual(events, [
      { kind: "reading", data: '{"x":1}', id: "a-1" },
      { kind: "message", data: "one\ntwo", id: "a-1" },
      { kind: "message", data: "", id: "a-2" },
    ]);
  }
});

test("an event that the end of the connection cut is not told", () => {
  assert.deepEqual(new EventParser().feed("event: reading\ndata: {}\n"), []);
});

test("errors are the server's sentence, in either dialect", () => {
  const ours = sentenceOf(404, '{"error":{"code":"not_found","message":"there is no job x","field":null}}');
  assert.equal(ours.message, "there is no job x");
  assert.equal(ours.code, "not_found");
  assert.equal(sentenceOf(422, '{"detail":"job_id: missing"}').message, "job_id: missing");
  assert.equal(sentenceOf(502, "<html>").message, "the server answered with status 502");
});

test("addresses of views are found again", () => {
  const link = linkTo("jobs", "a b/c", { tab: "costs" });
  const place = placeOf(link);
  assert.deepEqual(match("/jobs/:name", place.path), { name: "a b/c" });
  assert.equal(place.query.get("tab"), "costs");
  assert.equal(match("/jobs", place.path), undefined);
  assert.equal(linkTo("node", "gpu:0"), "#/node/gpu:0");
  assert.equal(placeOf("").path, "/");
  assert.equal(placeOf("#/node/").path, "/node");
  assert.deepEqual(match("/jobs/:name", "/jobs/%"), { name: "%" });
});

test("ages are told in words", () => {
  const now = new Date("2026-01-01T12:00:00Z");
  assert.equal(agoText("2026-01-01T11:59:59Z", now), "now");
  assert.equal(agoText("2026-01-01T11:59:20Z", now), "40 s ago");
  assert.equal(agoText("2026-01-01T11:48:00Z", now), "12 min ago");
  assert.equal(agoText("2025-12-31T12:00:00Z", now), "24 h ago");
  assert.equal(agoText("2025-12-29T12:00:00Z", now), "3 days ago");
  assert.equal(agoText("2026-01-01T12:00:05Z", now), "now"); // The server's clock is ahead.
  assert.equal(agoText("nonsense", now), "–");
});
