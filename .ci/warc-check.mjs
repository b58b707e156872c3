// Checks WARC files with warcio: that it can read them without a warning, that
// each record has the fields that ISO 28500 asks for and is a gzip member of its
// own, that records name each other, and that every digest is true.
import { createHash } from "node:crypto";
import { createReadStream, readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import { AsyncIterReader, WARCParser } from "warcio";

let faults = 0;
const fault = (where, what) => {
  faults++;
  console.log(`${where}: ${what}`);
};
console.warn = (...words) => fault("warcio", words.join(" "));

// label writes a SHA-1 as WARC files do: in base 32 (RFC 4648).
function label(bytes) {
  let bits = "";
  for (const byte of createHash("sha1").update(bytes).digest()) bits += byte.toString(2).padStart(8, "0");
  return "sha1:" + bits.match(/.{5}/g).map((five) => "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"[parseInt(five, 2)]).join("");
}

// payload returns the body of a response without its transfer coding.
async function payload(record) {
  const coding = record.httpHeaders.headers.get("Transfer-Encoding");
  const parts = [];
  for await (const part of new AsyncIterReader(record.reader, null, coding === "chunked")) parts.push(part);
  return Buffer.concat(parts);
}

async function* records(file, parseHttp) {
  const parser = new WARCParser(createReadStream(file), { parseHttp });
  for await (const record of parser) {
    yield record;
    await record.skipFully();
  }
}

const counts = {};
const ids = new Set();
const pages = new Set(); // of responses: URI and date, for revisits to refer to

async function checkBlocks(file) {
  const known = new Set();
  let n = 0;
  for await (const record of records(file, false)) {
    const header = (name) => record.warcHeaders.headers.get(name);
    const type = record.warcType;
    const where = `${file}: record ${n++} (${type})`;
    counts[type] = (counts[type] ?? 0) + 1;
    for (const name of ["WARC-Record-ID", "WARC-Type", "WARC-Date", "Content-Length", "Content-Type", "WARC-Block-Digest"])
      if (!header(name)) fault(where, `no ${name}`);
    if (record.warcHeaders.statusline !== "WARC/1.1") fault(where, record.warcHeaders.statusline);
    if (!/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z$/.test(header("WARC-Date"))) fault(where, "bad WARC-Date");
    if (ids.has(header("WARC-Record-ID"))) fault(where, "its id is there twice");
    ids.add(header("WARC-Record-ID"));
    known.add(header("WARC-Record-ID"));
    if ((n === 1) !== (type === "warcinfo")) fault(where, "warcinfo must be the first record, and no other");
    if (type === "request" || type === "metadata")
      if (!known.has(header("WARC-Concurrent-To"))) fault(where, "WARC-Concurrent-To names no record of the file");
    if (type === "response") pages.add(header("WARC-Target-URI") + " " + header("WARC-Date"));
    if (type === "revisit" && !pages.has(header("WARC-Refers-To-Target-URI") + " " + header("WARC-Refers-To-Date")))
      fault(where, "refers to no response that came before");
    const block = await record.readFully(false);
    if (block.length !== Number(header("Content-Length"))) fault(where, `${block.length} bytes, not ${header("Content-Length")}`);
    if (label(block) !== header("WARC-Block-Digest")) fault(where, "the block digest is wrong");
  }
}

async function checkPayloads(file) {
  for await (const record of records(file, true)) {
    if (record.warcType !== "response" || record.warcHeaders.headers.get("WARC-Truncated")) continue;
    if (label(await payload(record)) !== record.warcPayloadDigest) fault(`${file}: ${record.warcTargetURI}`, "the payload digest is wrong");
    counts.payloads = (counts.payloads ?? 0) + 1;
  }
}

// checkMembers unpacks each record by itself, from where the parser says it is
// to where the next one is.
async function checkMembers(file) {
  const bytes = readFileSync(file);
  const offsets = [];
  const parser = new WARCParser(createReadStream(file), { parseHttp: false });
  for await (const record of parser) {
    offsets.push(parser.offset);
    await record.skipFully();
  }
  for (const [i, offset] of offsets.entries()) {
    const record = gunzipSync(bytes.subarray(offset, offsets[i + 1]));
    if (record.lastIndexOf("WARC/1.1\r\nWARC-Type: ") !== 0 || !record.subarray(-4).equals(Buffer.from("\r\n\r\n")))
      fault(file, `what is at byte ${offset} is no record in a gzip member of its own`);
  }
}

const files = process.argv.slice(2).sort();
for (const file of files) {
  await checkBlocks(file);
  await checkPayloads(file);
  if (file.endsWith(".gz")) await checkMembers(file);
}
for (const type of ["warcinfo", "request", "response", "metadata"]) if (!counts[type]) fault("all files", `no ${type} record`);
console.log(`${files.length} files: ${Object.entries(counts).map(([what, n]) => `${n} ${what}`).join(", ")}; ${faults} faults`);
process.exit(faults ? 1 : 0);
