// Numbers as people read them.

export const NONE = "–";

export function fixed(value, digits = 2) {
  return value === null || value === undefined ? NONE : value.toFixed(digits);
}

export function whole(value) {
  return value === null || value === undefined ? NONE : Math.round(value).toLocaleString("en");
}

export function percent(value) {
  return value === null || value === undefined ? NONE : `${(100 * value).toFixed(1)} %`;
}

export function ago(time) {
  if (!time) return NONE;
  const seconds = Math.max(0, Date.now() / 1000 - time);
  if (seconds < 10) return "now";
  if (seconds < 90) return `${Math.round(seconds)} s ago`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min ago`;
  if (seconds < 129600) return `${Math.round(seconds / 3600)} h ago`;
  return `${Math.round(seconds / 86400)} d ago`;
}

export const bound = (k) => (k === "inf" ? "∞" : String(k));
export const updates = (card) => `${card.version} / ${card.updates || "?"}`;
export const staleness = (card) => `${fixed(card.staleness)} of ${bound(card.k)}`;

// Compares names as people count: k2 before k10. One collator, as making one takes longer than comparing.
const collator = new Intl.Collator("en", { numeric: true });
export const natural = collator.compare;
export const byName = (a, b) => collator.compare(a.id, b.id);
