/** Lists the open issues of a repository through an API that wants a token. */
export default async function () {
  const url = new URL("/api/issues", args.server);
  url.searchParams.set("repository", args.repository);
  const response = await fetch(url, { headers: { authorization: `Bearer ${Deno.env.get("ISSUES_TOKEN")}` } });
  if (response.status === 401) throw new Error("the token was not accepted; set another one: tendril secret set ISSUES_TOKEN");
  if (!response.ok) throw new Error(`${url.host} answered ${response.status}`);
  const issues = await response.json() as { number: number; title: string }[];
  return issues.map(({ number, title }) => ({ number, title }));
}
