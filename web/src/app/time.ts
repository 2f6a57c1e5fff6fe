// Moments in the reader's own time zone and language, and how long ago they are.
import { useEffect, useState } from "preact/hooks";

type Moment = number | string | Date; // Seconds since 1970, or RFC 3339.

export function toDate(moment: Moment): Date {
  return typeof moment === "number" ? new Date(moment * 1000) : new Date(moment);
}

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const clockWithSeconds = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });
const day = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });
const exact = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "long" });

const isValid = (date: Date) => !Number.isNaN(date.getTime());

// "14:03" of today, with the day for other days.
export function momentText(moment: Moment, now = new Date()): string {
  const date = toDate(moment);
  if (!isValid(date)) return "–";
  const time = clock.format(date);
  return date.toDateString() === now.toDateString() ? time : `${day.format(date)}, ${time}`;
}

export function clockText(moment: Moment): string {
  const date = toDate(moment);
  return isValid(date) ? clockWithSeconds.format(date) : "–";
}

// With day, seconds and time zone, for those who ask.
export function exactText(moment: Moment): string {
  const date = toDate(moment);
  return isValid(date) ? exact.format(date) : "–";
}

// "now", "40 s ago", "12 min ago", "3 h ago", "5 days ago". A moment that seems to come is one that just was:
// the server's clock is ahead, or the reader's `now` is some seconds old.
export function agoText(moment: Moment, now = new Date()): string {
  const seconds = (now.getTime() - toDate(moment).getTime()) / 1000;
  if (Number.isNaN(seconds)) return "–";
  if (seconds < 2) return "now";
  if (seconds < 99) return `${Math.round(seconds)} s ago`;
  if (seconds < 99 * 60) return `${Math.round(seconds / 60)} min ago`;
  return seconds < 48 * 3600 ? `${Math.round(seconds / 3600)} h ago` : `${Math.round(seconds / 86400)} days ago`;
}

// The present moment, drawn again every so many seconds.
export function useNow(seconds: number): Date {
  const [now, setNow] = useState(() => new Date());
  useEffect(() => {
    const timer = setInterval(() => setNow(new Date()), seconds * 1000);
    return () => clearInterval(timer);
  }, [seconds]);
  return now;
}
