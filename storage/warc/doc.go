// Package warc writes and reads web archives: WARC 1.1, ISO 28500:2017. It knows nothing of crawling.
// It never fetches, and never changes a byte of what a server sent.
//
//	a, err := warc.OpenArchiveWriter(warc.Config{Dir: "archive", FilePrefix: "books"})
//	capture, err := a.WriteVisit(&warc.Visit{URL: "https://example.com/", Date: start, Exchange: exchange})
//	err = a.Sync()
//	err = a.Close()
//
// The package decides which records a visit has, when a file ends, and what is cut after a crash.
// Begin with ArchiveWriter.WriteVisit (archive.go), Visit.encodeRecords (visit_records.go), and
// Reader.Next (reader.go).
//
// # Files and records
//
// A file is a sequence of records. Each has named fields and a block of bytes, and is a separate gzip
// member, so that any record can be read if its offset is known. Files begin with a warcinfo record: who
// crawled, and how. A visit has up to three records, linked by WARC-Concurrent-To:
//
//   - response: status line, header and body as they were received, with their transfer and content
//     coding. If reading ended early, WARC-Truncated says why. Interim responses (1xx) are separate
//     messages, and are left out.
//   - request: the bytes that were sent for it.
//   - metadata: what else is known of the visit, one field a line.
//
// If the content is archived already, a revisit record takes the place of the response: the header
// alone, and a reference to the response with the body. This is so for status 304 (profile
// server-not-modified), and for the payload that the same URL had before (profile
// identical-payload-digest).
//
// Digests are SHA-1 in base 32, as web archives commonly have them. They detect damage and equal content;
// they do not protect against forgery. WARC-Payload-Digest is that of the body without its transfer
// coding (RFC 9112, section 7), and with its content coding. A truncated record has none.
//
// # Crashes
//
// A file is named PREFIX-TIMESTAMP-SERIAL-HOST.warc.gz, with .open appended while it is being written.
// It ends before it grows beyond Config.MaxFileSize. When WriteVisit returns, the operating system has
// the records; when Sync returns, they are on the disk. OpenArchiveWriter cuts a file that a crash left
// open after its last complete record, and gives it its final name. A write that fails, on a full disk
// for example, leaves nothing behind, and can be repeated.
//
// # Goroutines and locks
//
// The package starts no goroutine. Lock order: ArchiveWriter.mu, then the locks of
// disk.AppendSyncTracker. Sync does not take ArchiveWriter.mu, so that others can write meanwhile. A
// Reader is for one goroutine at a time; it reads the files of any software, compressed or plain, and
// keeps no block in memory.
package warc
