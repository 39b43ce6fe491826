// Lists the unticked "- [ ]" boxes of the workspace's Markdown files.
interface Task {
  file: string;
  line: number;
  text: string;
}

function* markdown(folder: string, prefix = ""): Generator<string> {
  for (const entry of Deno.readDirSync(folder)) {
    if (entry.name.startsWith(".") || entry.name === "tools" || entry.name === "node_modules") continue;
    const path = `${prefix}${entry.name}`;
    if (entry.isDirectory) yield* markdown(`${folder}/${entry.name}`, `${path}/`);
    else if (entry.isFile && path.endsWith(".md")) yield path;
  }
}

export default function () {
  const open: Task[] = [];
  let done = 0;
  for (const file of [...markdown(__workspace)].sort()) {
    Deno.readTextFileSync(`${__workspace}/${file}`).split("\n").forEach((text, i) => {
      const box = /^\s*[-*] \[([ xX])\] (.*)$/.exec(text);
      if (box === null) return;
      if (box[1] === " ") open.push({ file, line: i + 1, text: box[2].trim() });
      else done++;
    });
  }
  return { open, done };
}
