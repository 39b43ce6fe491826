// Counts the words of the workspace's text files.
interface FileCount {
  file: string;
  words: number;
}

const skipped = new Set(["tools", "node_modules", "system-prompt.txt"]);

function* files(folder: string, prefix = ""): Generator<string> {
  for (const entry of Deno.readDirSync(folder)) {
    if (entry.name.startsWith(".") || skipped.has(entry.name)) continue;
    const path = `${prefix}${entry.name}`;
    if (entry.isDirectory) yield* files(`${folder}/${entry.name}`, `${path}/`);
    else if (entry.isFile) yield path;
  }
}

export default function () {
  const extensions = args.extensions ?? ["md", "txt"];
  const counts: FileCount[] = [];
  for (const file of files(__workspace)) {
    if (!extensions.some((e) => file.endsWith(`.${e}`))) continue;
    const text = Deno.readTextFileSync(`${__workspace}/${file}`);
    counts.push({ file, words: text.split(/\s+/).filter((w) => w !== "").length });
  }
  counts.sort((a, b) => b.words - a.words || a.file.localeCompare(b.file));
  return { total: counts.reduce((sum, c) => sum + c.words, 0), files: counts };
}
