// A site that lets nobody in but who proves to be the crawler: it checks each request
// with http-message-signatures, and the key directory that it takes the keys from.
// With "string" as the third argument it expects the form of Signature-Agent of early
// drafts, and checks each request with web-bot-auth 0.1.3, which knows no other.
// It is stopped by SIGINT, and then says what it saw.
//
// Usage: node signature-check.mjs PORT DIRECTORY [string], where DIRECTORY is the URL at which
// the directory of https://bot.example.com can be had.
import { createHash, createPublicKey, verify } from "node:crypto";
import { request, createServer } from "node:http";
import { httpbis } from "http-message-signatures";
import { verify as verifyBot } from "web-bot-auth";
import { verifierFromJWK } from "web-bot-auth/crypto";

const [port, directory, form] = process.argv.slice(2);
const agent = "https://bot.example.com";
const counts = { good: 0, bad: 0 };
const nonces = new Set();

// thumbprint returns the ID of a key (RFC 7638).
const thumbprint = ({ crv, kty, x }) => createHash("sha256").update(JSON.stringify({ crv, kty, x })).digest("base64url");

// fetchDirectory asks as a verifier of https://bot.example.com would.
const fetchDirectory = () => new Promise((resolve, reject) => {
  request(directory, { headers: { Host: "bot.example.com" } }, async (res) => {
    let body = "";
    for await (const part of res) body += part;
    if (res.statusCode !== 200) reject(new Error(`the directory is answered with ${res.statusCode}: ${body}`));
    else resolve({ headers: res.headers, status: res.statusCode, body });
  }).on("error", reject).end();
});

// lookup returns how the library finds a key, if it is one for a tag.
const lookup = (keys, tag) => async (params) => {
  const jwk = keys.get(params.keyid);
  if (!jwk || params.tag !== tag) return null;
  const key = createPublicKey({ key: jwk, format: "jwk" });
  return { id: params.keyid, algs: ["ed25519"], verify: async (data, signature) => verify(null, data, key, signature) };
};

// keysOf returns the keys of a directory, once all of them are proved.
async function keysOf({ headers, status, body }) {
  if (headers["content-type"] !== "application/http-message-signatures-directory+json") throw new Error(headers["content-type"]);
  const digest = `sha-256=:${createHash("sha256").update(body).digest("base64")}:`;
  if (headers["content-digest"] !== digest) throw new Error(`the digest of the directory is ${headers["content-digest"]}, not ${digest}`);
  const keys = new Map(JSON.parse(body).keys.map((jwk) => [jwk.kid, jwk]));
  if (keys.size !== 2) throw new Error(`the directory has ${keys.size} keys, not 2`);
  for (const [id, jwk] of keys) if (thumbprint(jwk) !== id) throw new Error(`${id} is not the thumbprint of its key`);
  const good = await httpbis.verifyMessage(
    { keyLookup: lookup(keys, "http-message-signatures-directory"), all: true, requiredParams: ["created", "expires", "keyid", "tag"] },
    { status, headers },
    { method: "GET", url: `${agent}/.well-known/http-message-signatures-directory`, headers: { host: "bot.example.com" } },
  );
  if (good !== true) throw new Error("a signature of the directory is false");
  return keys;
}

// admit throws unless a request is signed by a key of the directory, for this host
// and this once.
async function admit(req, keys) {
  const input = req.headers["signature-input"] ?? "";
  if (!/^sig1=\("@authority" "signature-agent";key="sig1"\);/.test(input)) throw new Error(`Signature-Input: ${input}`);
  if (req.headers["signature-agent"] !== `sig1="${agent}"`) throw new Error(`Signature-Agent: ${req.headers["signature-agent"]}`);
  const good = await httpbis.verifyMessage(
    { keyLookup: lookup(keys, "web-bot-auth"), all: true, maxAge: 60, requiredParams: ["created", "expires", "keyid", "alg", "nonce", "tag"] },
    { method: req.method, url: `http://${req.headers.host}${req.url}`, headers: req.headers },
  );
  if (good !== true) throw new Error("the signature is false");
  once(input);
}

// once throws if the nonce of a signature was there before.
function once(input) {
  const nonce = /;nonce="([^"]+)"/.exec(input)[1];
  if (nonces.has(nonce)) throw new Error("the nonce was there before");
  nonces.add(nonce);
}

// admitOlder is admit for the older form.
async function admitOlder(req, keys) {
  const input = req.headers["signature-input"] ?? "";
  if (!input.startsWith('sig1=("@authority" "signature-agent");')) throw new Error(`Signature-Input: ${input}`);
  if (req.headers["signature-agent"] !== `"${agent}"`) throw new Error(`Signature-Agent: ${req.headers["signature-agent"]}`);
  const message = { method: req.method, url: `http://${req.headers.host}${req.url}`, headers: req.headers };
  await verifyBot(message, async (data, signature, params) => {
    const jwk = keys.get(params.keyid);
    if (!jwk) throw new Error("no key of the directory has signed");
    await (await verifierFromJWK(jwk))(data, signature, params);
  });
  once(input);
}

const keys = await keysOf(await fetchDirectory());
const site = createServer(async (req, res) => {
  try {
    await (form === "string" ? admitOlder : admit)(req, keys);
    counts.good++;
  } catch (why) {
    counts.bad++;
    console.log(`${req.method} ${req.headers.host}${req.url}: ${why.message}`);
    res.writeHead(403).end();
    return;
  }
  const n = Number(req.url.slice(1)) || 0;
  if (req.url === "/robots.txt") res.writeHead(200, { "Content-Type": "text/plain" }).end(`User-agent: *\nAllow: /\nSitemap: http://${req.headers.host}/sitemap.xml\n`);
  else if (req.url === "/sitemap.xml") res.writeHead(200, { "Content-Type": "text/xml" }).end(`<urlset><url><loc>http://${req.headers.host}/50</loc></url></urlset>`);
  else if (n % 10 === 3) res.writeHead(302, { Location: `http://other.test/${n + 1}` }).end();
  else res.writeHead(200, { "Content-Type": "text/html" }).end(n < 20 ? `<a href="/${n + 1}">next</a>` : "the end");
});
site.listen(Number(port), "127.0.0.1", () => console.log("ready"));
process.on("SIGINT", () => {
  console.log(`${counts.good} requests are signed, ${counts.bad} are not`);
  process.exit(counts.bad ? 1 : 0);
});
