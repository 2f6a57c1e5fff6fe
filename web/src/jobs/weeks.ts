// Weeks of the reader's own calendar, which begin on Monday.

// Midnight at which the week of `day` begins.
export function weekBegin(day: Date): Date {
  const begin = new Date(day.getFullYear(), day.getMonth(), day.getDate());
  begin.setDate(begin.getDate() - ((begin.getDay() + 6) % 7));
  return begin;
}

// The bounds of the latest weeks, the present one included: one more than `weeks`. The clock may
// change within a week, so its length is not always the same.
export function weekBounds(weeks: number, now: Date): Date[] {
  const bounds: Date[] = [];
  for (let i = weeks - 1; i >= -1; --i) {
    const begin = weekBegin(now);
    begin.setDate(begin.getDate() - 7 * i);
    bounds.push(begin);
  }
  return bounds;
}

export function boundsPath(bounds: Date[]): string {
  return `v1/savings?bounds=${bounds.map((bound) => bound.toISOString()).join(",")}`;
}

const dayName = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short" });

export function weekName(from: Date): string {
  return dayName.format(from);
}
