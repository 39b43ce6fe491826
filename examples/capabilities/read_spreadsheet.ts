import { readFile } from "node:fs/promises";
import { join } from "node:path";
import * as XLSX from "npm:xlsx@0.18.5";

/** Reads a sheet of a spreadsheet as rows of objects. */
export default async function () {
  const book = XLSX.read(await readFile(join(__workspace, args.file)), { cellDates: true });
  const name = args.sheet ?? book.SheetNames[0];
  const sheet = book.Sheets[name];
  if (!sheet) throw new Error(`there is no sheet ${name}; there are ${book.SheetNames.join(", ")}`);
  const rows = XLSX.utils.sheet_to_json<Record<string, unknown>>(sheet, { defval: null });
  return { sheets: book.SheetNames, sheet: name, total: rows.length, rows: rows.slice(0, args.maxRows ?? 50) };
}
