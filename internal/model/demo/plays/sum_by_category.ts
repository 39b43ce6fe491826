// Sums a number column of a CSV file for each value of another column.
function cells(line: string): string[] {
  const found: string[] = [];
  for (const match of line.matchAll(/(?:^|,)(?:"((?:[^"]|"")*)"|([^,]*))/g)) {
    found.push((match[1]?.replaceAll('""', '"') ?? match[2] ?? "").trim());
  }
  return found;
}

export default function () {
  const text = Deno.readTextFileSync(`${__workspace}/${args.file}`);
  const [header, ...rows] = text.split(/\r?\n/).filter((l) => l.trim() !== "").map(cells);
  const column = (name: string) => {
    const index = (header ?? []).indexOf(name);
    if (index < 0) throw new Error(`${args.file} has no column "${name}"; it has ${(header ?? []).join(", ")}`);
    return index;
  };
  const group = column(args.group);
  const value = column(args.value);
  const sums = new Map<string, number>();
  for (const row of rows) {
    const amount = Number(row[value]);
    if (Number.isNaN(amount)) throw new Error(`"${row[value]}" in column "${args.value}" is not a number`);
    sums.set(row[group], (sums.get(row[group]) ?? 0) + amount);
  }
  const round = (n: number) => Math.round(n * 100) / 100;
  const groups = [...sums].map(([name, sum]) => ({ name, sum: round(sum) })).sort((a, b) => b.sum - a.sum);
  return { total: round(groups.reduce((t, g) => t + g.sum, 0)), groups };
}
