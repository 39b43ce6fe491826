import { readFile } from "node:fs/promises";
import { join } from "node:path";
import patch from "npm:fast-json-patch@3.1.1";

/** Tells what has to change to turn one JSON file into another. */
export default async function () {
  const read = async (file: string) => JSON.parse(await readFile(join(__workspace, file), "utf8"));
  const before = await read(args.before);
  const changes = patch.compare(before, await read(args.after));
  return { same: changes.length === 0, total: changes.length, changes: changes.slice(0, args.most ?? 100) };
}
