import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { marked } from "npm:marked@15.0.12";

/** Converts a Markdown file into an HTML page beside it. */
export default async function () {
  const source = await readFile(join(__workspace, args.file), "utf8");
  const title = /^#\s+(.+)$/m.exec(source)?.[1] ?? args.file;
  const escaped = title.replace(/[&<>]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;" }[c]!));
  const body = await marked.parse(source, { gfm: true });
  const page = `<!doctype html>\n<html>\n<head><meta charset="utf-8"><title>${escaped}</title></head>\n<body>\n${body}</body>\n</html>\n`;
  const output = args.output ?? args.file.replace(/\.(md|markdown)$/i, "") + ".html";
  await writeFile(join(__workspace, output), page);
  return { title, file: output, bytes: page.length };
}
