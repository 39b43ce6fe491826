import { XMLParser } from "npm:fast-xml-parser@4.5.3";

type Item = Record<string, unknown>;
const list = (value: unknown): Item[] => Array.isArray(value) ? value : value ? [value as Item] : [];
const text = (value: unknown): string => typeof value === "object" && value !== null ? String((value as Item)["#text"] ?? "") : String(value ?? "");

/** Fetches an RSS or Atom feed and returns its newest entries. */
export default async function () {
  const response = await fetch(args.url);
  if (!response.ok) throw new Error(`${args.url} answered ${response.status}`);
  const feed = new XMLParser({ ignoreAttributes: false }).parse(await response.text());
  const channel = feed.rss?.channel ?? feed.feed;
  if (!channel) throw new Error("this is neither RSS nor Atom");
  const entries = list(channel.item ?? channel.entry).slice(0, args.most ?? 10).map((item) => ({
    title: text(item.title).trim(),
    link: text(item.link) || String(list(item.link)[0]?.["@_href"] ?? ""),
    date: text(item.pubDate ?? item.updated ?? item.published),
  }));
  return { title: text(channel.title), entries };
}
