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

// "now", "40 s ago", "12 min ago", "3 h ago", "5 days ago"; "in 5 min" for moments to come.
export function agoText(moment: Moment, now = new Date()): string {
  const seconds = (now.getTime() - toDate(moment).getTime()) / 1000;
  if (Number.isNaN(seconds)) return "–";
  const size = Math.abs(seconds);
  if (size < 2) return "now";
  const [number, unit] =
    size < 99 ? [size, "s"] : size < 99 * 60 ? [size / 60, "min"] : size < 48 * 3600 ? [size / 3600, "h"] : [size / 86400, "days"];
  const text = `${Math.round(number as number)} ${unit}`;
  return seconds < 0 ? `in ${text}` : `${text} ago`;
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
