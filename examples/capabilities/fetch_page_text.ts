import { Readability } from "npm:@mozilla/readability@0.6.0";
import { parseHTML } from "npm:linkedom@0.18.12";

/** Fetches a page and returns its title, byline and readable text. */
export default async function () {
  const response = await fetch(args.url, { headers: { accept: "text/html" } });
  if (!response.ok) throw new Error(`${args.url} answered ${response.status}`);
  // The types of linkedom need those of a browser, which are not there.
  // deno-lint-ignore no-explicit-any
  const { document } = parseHTML(await response.text()) as any;
  const article = new Readability(document).parse();
  if (!article?.textContent) throw new Error(`${args.url} has no readable text`);
  const text = article.textContent.replace(/\n\s*\n\s*/g, "\n\n").trim();
  const most = args.maxChars ?? 4000;
  return { title: article.title, byline: article.byline ?? null, length: text.length, text: text.slice(0, most) };
}
