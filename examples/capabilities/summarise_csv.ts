import { readFile } from "node:fs/promises";
import { join } from "node:path";
import Papa from "npm:papaparse@5.5.3";

/** Says of each column of a CSV file what it holds. */
export default async function () {
  const text = await readFile(join(__workspace, args.file), "utf8");
  const { data, meta, errors } = Papa.parse(text.trim(), { header: true, skipEmptyLines: true });
  const rows = data as Record<string, string>[];
  const columns = (meta.fields as string[]).map((name) => {
    const values = rows.map((row) => row[name] ?? "").filter((value) => value !== "");
    const numbers = values.map(Number).filter((n) => !Number.isNaN(n));
    if (values.length > 0 && numbers.length === values.length) {
      const sum = numbers.reduce((a, b) => a + b, 0);
      return { name, kind: "number", empty: rows.length - values.length, min: Math.min(...numbers), max: Math.max(...numbers), mean: sum / numbers.length };
    }
    const counts = new Map<string, number>();
    for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
    const common = [...counts].sort((a, b) => b[1] - a[1]).slice(0, 3).map(([value, count]) => ({ value, count }));
    return { name, kind: "text", empty: rows.length - values.length, different: counts.size, common };
  });
  return { rows: rows.length, columns, problems: errors.length };
}
