import { existsSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";

/** Runs one query on a SQLite file of the workspace, which it cannot change. */
export default function () {
  const path = join(__workspace, args.file);
  if (!existsSync(path)) throw new Error(`there is no file ${args.file}`);
  const db = new DatabaseSync(path, { readOnly: true });
  try {
    const rows = db.prepare(args.sql).all(...(args.values ?? []) as string[]);
    return { total: rows.length, rows: rows.slice(0, args.maxRows ?? 50) };
  } finally {
    db.close();
  }
}
