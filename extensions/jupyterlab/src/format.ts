const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];

/** 1536 → "1.50 KiB": three significant digits, binary units. */
export function formatBytes(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= 999.5 && unit < UNITS.length - 1) {
    value /= 1024;
    unit += 1;
  }
  if (unit === 0) {
    return `${Math.round(value)} B`;
  }
  const digits = value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  return `${value.toFixed(digits)} ${UNITS[unit]}`;
}

/** 12345 → "12,345" in the reader's own notation. */
export function formatCount(count: number): string {
  return count.toLocaleString();
}

/** The part of a whole as a percentage with the digits that say something. */
export function formatShare(part: number, whole: number): string {
  const percent = (100 * part) / whole;
  if (percent > 0 && percent < 0.1) {
    return '< 0.1 %';
  }
  return `${percent.toFixed(percent < 10 ? 1 : 0)} %`;
}
