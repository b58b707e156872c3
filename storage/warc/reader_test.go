package warc

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A Reader reads files of other software: their records, with offsets and blocks.
func TestReadsWget(t *testing.T) {
	for _, tt := range []struct {
		file  string
		types string
	}{
		{"testdata/wget.warc", "warcinfo request response metadata resource resource"},
		{"testdata/wget.warc.gz", "warcinfo request response request response metadata resource resource"},
	} {
		b, err := os.ReadFile(tt.file)
		if err != nil {
			t.Fatal(err)
		}
		var types []string
		for r := NewReader(bytes.NewReader(b)); ; {
			record, err := r.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", tt.file, err)
			}
			types = append(types, record.Type())
			block, err := io.ReadAll(record.Block)
			if want := record.Header.Get("WARC-Block-Digest"); err != nil || expectedDigest(string(block)) != want {
				t.Errorf("%s: block digest %s, want %s (%v)", tt.file, expectedDigest(string(block)), want, err)
			}
			again, err := NewReader(bytes.NewReader(b[record.Offset:])).Next()
			if err != nil || again.Header.Get("WARC-Record-ID") != record.Header.Get("WARC-Record-ID") {
				t.Errorf("%s: another record at byte %d (%v)", tt.file, record.Offset, err)
			}
		}
		if got := strings.Join(types, " "); got != tt.types {
			t.Errorf("%s holds %s, want %s", tt.file, got, tt.types)
		}
	}
}

const smallRecord = "WARC/1.1\r\nWARC-Type: response\r\nContent-Length: 5\r\n\r\nhello\r\n\r\n"

// A Reader accepts common deviations from the format: line ends, folded fields, gzip members of several
// records.
func TestReadsMalformedFiles(t *testing.T) {
	unix := strings.ReplaceAll(smallRecord, "\r\n", "\n")
	for _, tt := range []struct {
		name, file string
		offsets    []int64
	}{
		{"nothing", "", nil},
		{"only ends of lines", "\r\n\r\n", nil},
		{"two records", smallRecord + smallRecord, []int64{0, int64(len(smallRecord))}},
		{"bare line feeds", unix + unix, []int64{0, int64(len(unix))}},
		{"no end of line after the last block", strings.TrimSpace(smallRecord), []int64{0}},
		{"too many ends of lines", "\r\n" + smallRecord + "\r\n\r\n" + smallRecord,
			[]int64{2, int64(len(smallRecord)) + 6}},
		{"gzip members", gzipText(smallRecord) + gzipText(smallRecord), []int64{0, int64(len(gzipText(smallRecord)))}},
		{"one gzip member for all", gzipText(smallRecord + smallRecord), []int64{0, 0}},
		{"an empty gzip member", gzipText("") + gzipText(smallRecord), []int64{int64(len(gzipText("")))}},
		{"a long name and a continued value",
			strings.Replace(smallRecord, "WARC-Type", strings.Repeat("X", 5000)+":  a\r\n\t b \r\nwarc-TYPE", 1),
			[]int64{0}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var offsets []int64
			r := NewReader(strings.NewReader(tt.file))
			for {
				record, err := r.Next()
				if err == io.EOF {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				offsets = append(offsets, record.Offset)
				if got := record.Type(); got != "response" {
					t.Errorf("type %q", got)
				}
				if len(offsets)%2 == 0 {
					continue // leave the block unread, so that Next skips it
				}
				if block, err := io.ReadAll(record.Block); err != nil || string(block) != "hello" {
					t.Errorf("block %q, %v", block, err)
				}
			}
			if diff := cmp.Diff(tt.offsets, offsets); diff != "" {
				t.Errorf("offsets (-want +got)\n%s", diff)
			}
			if _, err := r.Next(); err != io.EOF {
				t.Errorf("after the end: %v", err)
			}
		})
	}
}

// Next returns a SyntaxError with the offset of the record and the cause, and returns the same error again.
func TestReaderErrors(t *testing.T) {
	torn := gzipText(smallRecord)
	for _, tt := range []struct {
		name, file string
		offset     int64
		want       string
	}{
		{"not a WARC file", "<!doctype html><title>x</title>\n", 0, `begins with "<!doctype html><titl`},
		{"one byte", "W", 0, "unexpected EOF"},
		{"a length that is too short", strings.Replace(smallRecord, ": 5", ": 3", 1) + smallRecord,
			int64(len(smallRecord)) - 6, `begins with "lo"`},
		{"a length that is too long", strings.Replace(smallRecord, ": 5", ": 500", 1), 0, "unexpected EOF"},
		{"no length", strings.Replace(smallRecord, "Content-Length: 5\r\n", "", 1), 0,
			`Content-Length "" is not a valid length`},
		{"a negative length", strings.Replace(smallRecord, ": 5", ": -5", 1), 0,
			`Content-Length "-5" is not a valid length`},
		{"a huge length", strings.Replace(smallRecord, ": 5", ": 99999999999999999999", 1), 0, "is not a valid length"},
		{"no field", strings.Replace(smallRecord, "WARC-Type: ", "WARC-Type ", 1), 0,
			`"WARC-Type response" is not a named field`},
		{"continues no field", strings.Replace(smallRecord, "WARC-Type", " WARC-Type", 1), 0, "is a continuation line"},
		{"a header without end", "WARC/1.1\r\n" + strings.Repeat("A: b\r\n", 1<<16), 0, "longer than Reader.MaxHeader"},
		{"a line without end", "WARC/1.1\r\nA: " + strings.Repeat("b", 1<<17), 0, "longer than Reader.MaxHeader"},
		{"header cut", smallRecord + smallRecord[:20], int64(len(smallRecord)), "unexpected EOF"},
		{"a torn member", torn + torn[:len(torn)-9], int64(len(torn)), "unexpected EOF"},
		{"a damaged member", torn + torn[:len(torn)-6] + "xxxxxx", int64(len(torn)), "checksum"},
		{"more than members", torn + "and more of it", int64(len(torn)), "gzip: invalid header"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := NewReader(strings.NewReader(tt.file))
			var err error
			for err == nil {
				_, err = r.Next()
			}
			var syntaxErr *SyntaxError
			if !errors.As(err, &syntaxErr) || syntaxErr.RecordOffset != tt.offset ||
				!strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %q at byte %d", err, tt.want, tt.offset)
			}
			if _, again := r.Next(); again != err {
				t.Errorf("then %v", again)
			}
		})
	}
}

// Reading a block that ends early returns io.ErrUnexpectedEOF.
func TestBlockEndsEarly(t *testing.T) {
	record, err := NewReader(strings.NewReader(smallRecord[:len(smallRecord)-5])).Next()
	if err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(record.Block); err != io.ErrUnexpectedEOF || string(b) != "hell" {
		t.Errorf("%q, %v", b, err)
	}
}

// For any file, the Reader comes to an end, offsets do not decrease, and blocks have the stated length.
func FuzzReader(f *testing.F) {
	for _, s := range []string{smallRecord, smallRecord + smallRecord, gzipText(smallRecord),
		gzipText(smallRecord+smallRecord) + gzipText(smallRecord), smallRecord[:30], gzipText(smallRecord)[:40]} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		r := NewReader(bytes.NewReader(file))
		for last := int64(0); ; {
			record, err := r.Next()
			if err != nil {
				return
			}
			if record.Offset < last || record.Offset >= int64(len(file)) {
				t.Fatalf("record at byte %d after one at %d, of %d", record.Offset, last, len(file))
			}
			last = record.Offset
			n, err := io.Copy(io.Discard, record.Block)
			if want, _ := record.Header.contentLength(); err == nil && n != want {
				t.Fatalf("%d bytes, want %d", n, want)
			}
		}
	})
}

// For any bytes that a server sends, the archived response is a part of them, and parsing that again gives
// the same response.
func FuzzMessage(f *testing.F) {
	for _, s := range []string{"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi!",
		"HTTP/1.1 100 C\r\n\r\nHTTP/1.1 304 N\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nA: b\r\n\r\nmore",
		"HTTP/1.0 200 OK\r\n\r\nhi"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, received []byte) {
		m, err := parseFinalResponse("GET", received, false)
		if err != nil {
			return
		}
		if !bytes.Contains(received, m.raw) || m.headerSize > len(m.raw) {
			t.Fatalf("%q is not in what was received, or its header of %d bytes is not in it", m.raw, m.headerSize)
		}
		again, err := parseFinalResponse("GET", m.raw, false)
		if err != nil || again.payloadDigest != m.payloadDigest || !bytes.Equal(again.raw, m.raw) {
			t.Fatalf("read again: %v, payload %s, was %s", err, again.payloadDigest, m.payloadDigest)
		}
	})
}
