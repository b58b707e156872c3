// Package ledger keeps, in files to which lines are only ever appended, what each
// request of a crawl was permitted by, and checks such files. It never fetches, and
// decides nothing: what it proves is that the records agree with each other, with
// the robots.txt files beside them, and with the rests that they name.
//
// # What a ledger is
//
// A directory of segments, and of robots.txt files by their SHA-256:
//
//	ledger-000001.jsonl.zst   full: compressed with zstd (RFC 8878)
//	ledger-000002.jsonl       being written
//	robots/ab/abcd….txt       the bytes that rules were read from
//
// A segment is JSON Lines. Each line is one Record, and begins with its hash:
//
//	{"hash":"9f…","n":12,"time":"2026-11-22T06:37:49.123456Z","request":{…}}
//
// The hash is the SHA-256, in hex, of the hash of the line before (64 zeros for the
// first line of all) followed by the line from "n": up to and without the line end.
// So no record can be changed, left out, added or moved without the hash of the next
// giving it away. The first record of each further segment names the SHA-256 of the
// file before it.
//
// A request is written before its first byte leaves, and what came of it after:
// whatever kills the process, a request that a server saw has its record. When
// Append has returned, a record is with the operating system, but for a Response, which
// goes with the next; when Sync has, all are on the disk.
//
// # What Verify checks
//
// The chain; that each robots.txt has its hash; that each verdict is the one which
// package robots derives again from that file; that every rest was as long as it
// had to be, by what the records say of it and by their times, from which is taken
// off by how much the clock was set meanwhile; and the signatures of checkpoints.
// docs/ledger.md tells what that proves and what it does not.
package ledger
