// Package warc writes and reads web archives: WARC 1.1, ISO 28500:2017. It
// knows nothing of crawling; it never fetches, and it never changes a byte of
// what a server sent.
//
// # What a WARC file is
//
// A file is a row of records, each a few named fields and a block of bytes, and
// each a gzip member of its own, so that any record can be read when its offset
// is known. Files begin with a warcinfo record: who crawled, and how. One visit
// is up to three records that name each other (WARC-Concurrent-To):
//
//   - response: status line, header and body as they came over the wire, with
//     their transfer and content coding. If reading ended early, WARC-Truncated
//     says why. Interim answers (1xx) are messages of their own and are left out.
//   - request: what was sent for it, byte for byte.
//   - metadata: what else is known of the visit, one field a line.
//
// An answer that brings nothing new is a revisit in the place of the response:
// the header alone, with a pointer to the response that has the body. That is a
// 304 (profile server-not-modified), or the payload that the same URL had before
// (profile identical-payload-digest).
//
// Digests are SHA-1 in base 32, as archives label them everywhere. They find
// damage and sameness; they do not defend against forgers. The payload, of which
// WARC-Payload-Digest speaks, is the body without its transfer coding (RFC 9112,
// 7), and with its content coding. A truncated record has none.
//
// # Writing
//
// An ArchiveWriter is a directory of such files:
//
//	a, err := warc.OpenArchiveWriter(warc.Config{Dir: "archive", Prefix: "books"})
//	kept, err := a.WriteVisit(&warc.Visit{URL: "https://example.com/", Date: start, Exchange: exchange})
//	err = a.Sync()
//	err = a.Close()
//
// A file is named PREFIX-TIMESTAMP-SERIAL-HOST.warc.gz, and .open is appended
// while it is being written. It is closed, and another begun, before it grows
// beyond Config.MaxFileSize.
//
// Nothing complete is lost in a crash: when WriteVisit has returned, the records are
// with the operating system; when Sync has, they are on the disk. A file that a
// crash left open is cut back to its last whole record, and closed, when its
// directory is opened again. A write that fails, on a full disk say, leaves
// nothing behind, and can be repeated.
//
// # Reading
//
// A Reader reads the records of a file one after the other, from gzip members or
// plain, by any software. It holds no block in memory: see Reader.
package warc
