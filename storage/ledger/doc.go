// Package ledger writes and verifies the record of a crawl's politeness: what permitted each request,
// in files to which lines are only appended. Verify proves that the records agree with each other,
// with the robots.txt files beside them, and with the delays that they state. docs/ledger.md says
// what that proves and what it does not.
//
//	l, err := ledger.Open(ledger.Config{Dir: "ledger", RunStart: run})
//	n, err := l.Append(&ledger.Record{Request: &request}) // before the first byte is sent
//	_, err = l.Append(&ledger.Record{Response: &ledger.Response{RequestNumber: n, Status: 200}})
//	err = l.Close()
//	report, err := ledger.Verify("ledger", ledger.VerifyOptions{})
//
// The package decides when segments and checkpoints end, what is cut after a crash, and what a
// finding is. It never fetches, and it decides nothing about a crawl.
//
// Begin with Record (record.go) for the format, Ledger.Append (ledger.go) and write_buffer.go for
// writing, resume.go for a crash, and verifier.checkLine (verify.go) for verification:
// record_content_checks.go checks each kind of record, by a verdictChecker, a delayChecker and a
// robotsRedirectTracker.
//
// # Files
//
// A ledger is a directory of segments, and of robots.txt files by their SHA-256:
//
//	ledger-000001.jsonl.zst   full: compressed with zstd (RFC 8878)
//	ledger-000002.jsonl       being written
//	robots/ab/abcd….txt       the bytes of a robots.txt
//
// A segment is JSON Lines. Each line is one Record, and begins with its hash:
//
//	{"hash":"9f…","n":12,"time":"2026-11-22T06:37:49.123456Z","request":{…}}
//
// The hash is the SHA-256, in hex, of the hash of the previous line (64 zeros for the first line of
// all) followed by the line from "n": to its last brace. A record that is changed, left out, added or
// moved therefore makes the next hash wrong. The first record of each segment but the first states
// the SHA-256 of the previous file.
//
// A Request is written before its first byte is sent, and its Response after the transfer, so that
// each request that a server saw has its record, whatever kills the process. When Append returns, the
// operating system has the record, except a Response, which is written with the next record. When
// Sync returns, all records are on the disk.
//
// # Goroutines and locks
//
// The package starts no goroutine. Lock order: Ledger.mu, then the locks of disk.AppendSyncTracker.
// Sync releases Ledger.mu before it waits for the disk, so that others can append meanwhile; the end
// of a segment holds it. robotsFileStore.mu is taken alone.
package ledger
