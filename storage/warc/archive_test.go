package warc

import (
	"bytes"
	"compress/gzip"
	"crypto/sha1"
	"encoding/base32"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/decorum-crawler/decorum"
)

const requestText = "GET /a HTTP/1.1\r\nHost: example.com\r\n\r\n"

var noon = time.Date(2026, 11, 22, 12, 0, 0, 123_456_789, time.UTC)

// newVisit returns a visit that received the given bytes.
func newVisit(received string) *Visit {
	return &Visit{URL: "https://example.com/a", Date: noon, Exchange: &decorum.RawExchange{
		RawRequest: []byte(requestText), RawResponse: []byte(received),
		Addr: netip.MustParseAddrPort("[::ffff:192.0.2.1]:443"),
	}}
}

// openArchive opens an archive, in a new directory unless cfg names one, and closes it when the test ends.
func openArchive(t *testing.T, cfg Config) *ArchiveWriter {
	t.Helper()
	if cfg.Dir == "" {
		cfg.Dir = t.TempDir()
	}
	a, err := OpenArchiveWriter(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	return a
}

// A recordWithBlock is a record with its block in memory.
type recordWithBlock struct {
	*Record
	block string
}

// readRecords returns all records of a file, and checks the version and the block digest of each.
func readRecords(t *testing.T, file io.Reader) []recordWithBlock {
	t.Helper()
	var all []recordWithBlock
	for r := NewReader(file); ; {
		record, err := r.Next()
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		block, err := io.ReadAll(record.Block)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := record.Header.Get("WARC-Block-Digest"), expectedDigest(string(block)); got != want {
			t.Errorf("block digest %s, want %s", got, want)
		}
		if record.Version != "WARC/1.1" {
			t.Errorf("version %q", record.Version)
		}
		all = append(all, recordWithBlock{record, string(block)})
	}
}

// expectedDigest returns the labelled digest of s, without the code under test.
func expectedDigest(s string) string {
	sum := sha1.Sum([]byte(s))
	return "sha1:" + base32.StdEncoding.EncodeToString(sum[:])
}

// fileNames returns the names of the files in a directory.
func fileNames(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names
}

// closeAndRead closes the archive, which must have one file, and returns the records of the file.
func closeAndRead(t *testing.T, a *ArchiveWriter) []recordWithBlock {
	t.Helper()
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	names := fileNames(t, a.cfg.Dir)
	if len(names) != 1 || !strings.HasSuffix(names[0], ".warc.gz") {
		t.Fatalf("files %q, want one", names)
	}
	f, err := os.Open(filepath.Join(a.cfg.Dir, names[0]))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	return readRecords(t, f)
}

func gzipText(s string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	io.WriteString(z, s)
	z.Close()
	return b.String()
}

// The block of a response is what the server sent, byte for byte, and its payload is the body without
// transfer coding.
func TestResponseIsArchivedUnchanged(t *testing.T) {
	zipped := gzipText("hello, world")
	for _, tt := range []struct {
		name, received, block, payload string
		cut                            decorum.TruncationReason
		truncated                      string
	}{
		{name: "plain", received: "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", payload: "hello"},
		{name: "spacing, case, order, duplicates", payload: "hi",
			received: "HTTP/1.1 200  Fine \r\ncontent-LENGTH:2\r\nX-b:  1  \r\nX-A: \t2\r\nx-B: 3\r\nX-Fold: a\r\n " +
				"b\r\n\r\nhi"},
		{name: "bare line feeds", received: "HTTP/1.0 200 OK\nContent-Length: 2\n\nhi", payload: "hi"},
		{name: "empty", received: "HTTP/1.1 204 No Content\r\n\r\n", payload: ""},
		{name: "no length", received: "HTTP/1.0 200 OK\r\n\r\nto the end", payload: "to the end"},
		{name: "gzip", received: fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: "+
			"%d\r\n\r\n%s", len(zipped), zipped), payload: zipped},
		{name: "chunked with extensions and trailers", payload: "hello, world",
			received: "HTTP/1.1 200 OK\r\nTrailer: X-Sum\r\nTransfer-Encoding: " +
				"chunked\r\n\r\n5;a=\"b\"\r\nhello\r\n007\r\n, world\r\n0;end\r\nX-Sum: 1\r\n\r\n"},
		{name: "bytes after it are not part of it",
			received: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi!HTTP/1.1 500 No\r\n\r\n",
			block:    "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", payload: "hi"},
		{name: "interim responses are not part of it", received: "HTTP/1.1 103 Early\r\nLink: <a>\r\n\r\nHTTP/1.1 " +
			"102 Busy\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",
			block: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", payload: "hi"},
		{name: "many interim responses", received: strings.Repeat("HTTP/1.1 102 Busy\r\n\r\n", 1000) +
			"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",
			block: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", payload: "hi"},
		{name: "truncated by length", received: "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhi",
			cut: decorum.TruncatedByLength, truncated: "length"},
		{name: "truncated by time", received: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhe",
			cut: decorum.TruncatedByTime, truncated: "time"},
		{name: "disconnected", received: "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhi",
			cut: decorum.TruncatedByDisconnect, truncated: "disconnect"},
		{name: "not wanted", received: "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n",
			cut: decorum.TruncatedUnspecified, truncated: "unspecified"},
		{name: "without length, and truncated", received: "HTTP/1.1 200 OK\r\n\r\nhi",
			cut: decorum.TruncatedByTime, truncated: "time"},
		{name: "not wanted, but it was there", received: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",
			cut: decorum.TruncatedUnspecified, payload: "hi"},
		{name: "shorter than its length", received: "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhi",
			truncated: "disconnect"},
		{name: "bad chunks", received: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhello",
			cut: decorum.TruncatedUnspecified, truncated: "unspecified"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := openArchive(t, Config{})
			v := newVisit(tt.received)
			v.Exchange.Truncation = tt.cut
			capture, err := a.WriteVisit(v)
			if err != nil {
				t.Fatal(err)
			}
			records := closeAndRead(t, a)
			if len(records) != 3 {
				t.Fatalf("%d records, want warcinfo, response and request", len(records))
			}
			response, request := records[1], records[2]
			if tt.block == "" {
				tt.block = tt.received
			}
			if response.block != tt.block {
				t.Errorf("response %q, want %q", response.block, tt.block)
			}
			if request.block != requestText {
				t.Errorf("request %q", request.block)
			}
			payload := expectedDigest(tt.payload)
			if tt.truncated != "" {
				payload = ""
			}
			if got := response.Header.Get("WARC-Payload-Digest"); got != payload || capture.PayloadDigest != payload {
				t.Errorf("payload digest %q, returned %q, want %q", got, capture.PayloadDigest, payload)
			}
			if got := response.Header.Get("WARC-Truncated"); got != tt.truncated {
				t.Errorf("truncated %q, want %q", got, tt.truncated)
			}
		})
	}
}

// A response to HEAD is complete, although its header announces a body.
func TestHead(t *testing.T) {
	a := openArchive(t, Config{})
	v := newVisit("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n")
	v.Exchange.RawRequest = []byte("HEAD /a HTTP/1.1\r\nHost: example.com\r\n\r\n")
	if _, err := a.WriteVisit(v); err != nil {
		t.Fatal(err)
	}
	h := closeAndRead(t, a)[1].Header
	if h.Get("WARC-Truncated") != "" || h.Get("WARC-Payload-Digest") != expectedDigest("") {
		t.Errorf("header %v, want that of an empty payload, which is not truncated", h)
	}
}

// Bytes that are not an HTTP/1.1 response are not archived, and leave no file.
func TestNoResponse(t *testing.T) {
	for _, received := range []string{"", "SSH-2.0-OpenSSH_9\r\n", "HTTP/1.1 200 OK\r\nContent-", "HTTP/1.1  200 Fine",
		strings.Repeat("HTTP/1.1 102 Busy\r\n\r\n", 200)} {
		a := openArchive(t, Config{})
		if _, err := a.WriteVisit(newVisit(received)); !errors.Is(err, ErrNoResponse) {
			t.Errorf("%.30q: %v, want ErrNoResponse", received, err)
		}
		if err := a.Close(); err != nil {
			t.Error(err)
		}
		if names := fileNames(t, a.cfg.Dir); len(names) > 0 {
			t.Errorf("%.30q left %q", received, names)
		}
	}
}

// The records of a visit have their fields, with one ID each, and control characters in values become blanks.
func TestFields(t *testing.T) {
	a := openArchive(t, Config{FilePrefix: "books", WarcinfoFields: []Field{{"operator", "mailto:a@example.com"}}})
	v := newVisit("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")
	v.MetadataFields = []Field{{"source", "link"}, {"robots_rule", "Allow: /\r\nWARC-Type: evil"}}
	if _, err := a.WriteVisit(v); err != nil {
		t.Fatal(err)
	}
	records := closeAndRead(t, a)
	id := records[1].Header.Get("WARC-Record-ID")
	common := func(kind string) []string {
		return []string{"WARC-Type: " + kind, "WARC-Date: 2026-11-22T12:00:00.123Z",
			"WARC-Target-URI: https://example.com/a",
			"WARC-IP-Address: 192.0.2.1"}
	}
	for i, want := range [][]string{
		{"WARC-Type: warcinfo", "Content-Type: application/warc-fields",
			"WARC-Filename: " + fileNames(t, a.cfg.Dir)[0]},
		append(common("response"), "Content-Type: application/http;msgtype=response", "WARC-Payload-Digest: "+
			expectedDigest("hi"), "Content-Length: 40"),
		append(common("request"), "Content-Type: application/http;msgtype=request", "WARC-Concurrent-To: "+id),
		append(common("metadata"), "Content-Type: application/warc-fields", "WARC-Concurrent-To: "+id),
	} {
		for _, f := range want {
			name, value, _ := strings.Cut(f, ": ")
			if got := records[i].Header.Get(name); got != value {
				t.Errorf("record %d: %s is %q, want %q", i, name, got, value)
			}
		}
	}
	if got, want := records[0].block, "operator: mailto:a@example.com\r\n"; !strings.HasPrefix(got,
		"format: WARC File Format 1.1\r\n") || !strings.HasSuffix(got, want) {
		t.Errorf("warcinfo %q", got)
	}
	if got, want := records[3].block, "source: link\r\nrobots_rule: Allow: /  WARC-Type: evil\r\n"; got != want {
		t.Errorf("metadata %q, want %q", got, want)
	}
	ids := map[string]bool{}
	for _, r := range records {
		ids[r.Header.Get("WARC-Record-ID")] = true
	}
	if len(ids) != 4 {
		t.Errorf("%d ids for 4 records", len(ids))
	}
}

// A response with status 304, or with the payload of an earlier one, becomes a revisit record that refers to
// the earlier capture.
func TestRevisits(t *testing.T) {
	first := &CaptureDateAndDigest{Date: noon.Add(-time.Hour), PayloadDigest: expectedDigest("hi")}
	header := "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"
	for _, tt := range []struct {
		name, received string
		previous       *CaptureDateAndDigest
		block, profile string
		capture        CaptureDateAndDigest
	}{
		{"the same payload", header + "hi", first, header, ProfileSamePayload, *first},
		{"another payload", header + "ho", first, header + "ho", "", CaptureDateAndDigest{noon, expectedDigest("ho")}},
		{"the first time", header + "hi", nil, header + "hi", "", CaptureDateAndDigest{noon, expectedDigest("hi")}},
		{"304", "HTTP/1.1 304 Not Modified\r\n\r\n", first, "HTTP/1.1 304 Not Modified\r\n\r\n",
			profileNotModified, *first},
		{"304 without an earlier capture", "HTTP/1.1 304 Not Modified\r\n\r\n", nil,
			"HTTP/1.1 304 Not Modified\r\n\r\n", profileNotModified, CaptureDateAndDigest{}},
		{"no payload", "HTTP/1.1 301 Go\r\nContent-Length: 0\r\n\r\n", &CaptureDateAndDigest{noon, expectedDigest("")},
			"HTTP/1.1 301 Go\r\nContent-Length: 0\r\n\r\n", "", CaptureDateAndDigest{noon, expectedDigest("")}},
		{"a truncated one after a truncated one", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nh",
			&CaptureDateAndDigest{Date: noon},
			"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nh", "", CaptureDateAndDigest{Date: noon}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := openArchive(t, Config{})
			v := newVisit(tt.received)
			v.PreviousCapture = tt.previous
			capture, err := a.WriteVisit(v)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.capture, capture); diff != "" {
				t.Errorf("capture (-want +got)\n%s", diff)
			}
			r := closeAndRead(t, a)[1]
			want := map[string]string{"WARC-Type": TypeResponse, "WARC-Profile": tt.profile}
			if tt.profile != "" {
				want["WARC-Type"], want["WARC-Refers-To-Target-URI"] = TypeRevisit, "https://example.com/a"
				if tt.previous != nil {
					want["WARC-Refers-To-Date"], want["WARC-Payload-Digest"] = "2026-11-22T11:00:00.123Z",
						expectedDigest("hi")
				}
			}
			for name, value := range want {
				if got := r.Header.Get(name); got != value {
					t.Errorf("%s is %q, want %q", name, got, value)
				}
			}
			if r.block != tt.block {
				t.Errorf("block %q, want %q", r.block, tt.block)
			}
		})
	}
}

// Files end before they exceed MaxFileSize, no visit of several concurrent writers is lost, and no visit is
// divided.
func TestRotation(t *testing.T) {
	const visits, workers, maxSize = 40, 4, 8 << 10
	a := openArchive(t, Config{FilePrefix: "many", MaxFileSize: maxSize})
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := range visits / workers {
				v := newVisit("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")
				v.URL = fmt.Sprintf("https://example.com/%d-%d", w, i)
				if _, err := a.WriteVisit(v); err != nil {
					t.Error(err)
				}
				if err := a.Sync(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	names := fileNames(t, a.cfg.Dir)
	if len(names) < 3 {
		t.Fatalf("files %q, want several", names)
	}
	seen := map[string]int{}
	for i, name := range names {
		var serial int
		if !strings.HasPrefix(name, "many-") || !strings.HasSuffix(name, ".warc.gz") {
			t.Errorf("name %q", name)
		}
		if _, err := fmt.Sscanf(strings.Split(name, "-")[2], "%05d", &serial); err != nil || serial != i {
			t.Errorf("%s: serial %d, want %d (%v)", name, serial, i, err)
		}
		b, err := os.ReadFile(filepath.Join(a.cfg.Dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if len(b) > maxSize {
			t.Errorf("%s has %d bytes, more than %d", name, len(b), maxSize)
		}
		records := readRecords(t, bytes.NewReader(b))
		if records[0].Type() != TypeWarcinfo || records[0].Header.Get("WARC-Filename") != name {
			t.Errorf("%s begins with %v", name, records[0].Header)
		}
		for j := 1; j < len(records); j += 2 {
			if records[j].Type() != TypeResponse || records[j+1].Type() != TypeRequest {
				t.Errorf("%s: a visit is divided", name)
			}
			seen[records[j].Header.Get("WARC-Target-URI")]++
		}
	}
	if len(seen) != visits {
		t.Errorf("%d visits in the files, want %d", len(seen), visits)
	}
}

// A write that failed can be repeated, and leaves nothing in the archive.
func TestWriteCanBeRepeated(t *testing.T) {
	a := openArchive(t, Config{})
	v := newVisit("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")
	if _, err := a.WriteVisit(v); err != nil {
		t.Fatal(err)
	}
	// Bytes of an earlier failed write are at the end of the file.
	if _, err := a.file.WriteAt(bytes.Repeat([]byte{0x1f}, 1000), a.file.size); err != nil {
		t.Fatal(err)
	}
	writable := a.file.File
	readOnly, err := os.Open(writable.Name())
	if err != nil {
		t.Fatal(err)
	}
	a.file.File = readOnly
	if _, err := a.WriteVisit(v); err == nil {
		t.Fatal("WriteVisit succeeds with a read-only file")
	}
	a.file.File = writable
	if err := readOnly.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := a.WriteVisit(v); err != nil {
		t.Fatal(err)
	}
	if n := len(closeAndRead(t, a)); n != 5 {
		t.Errorf("%d records, want 5", n)
	}
}

// After a failed Sync nothing is written any more, and the file keeps its suffix .open, so that the next
// OpenArchiveWriter recovers what is left of it.
func TestNothingAfterAFailedSync(t *testing.T) {
	a := openArchive(t, Config{})
	v := newVisit("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")
	if _, err := a.WriteVisit(v); err != nil {
		t.Fatal(err)
	}
	writable := a.file.File
	r, w, err := os.Pipe() // cannot be synced
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	a.file.File = w
	if err := a.Sync(); err == nil {
		t.Fatal("a pipe was synced")
	}
	if err := writable.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := a.WriteVisit(v); err == nil {
		t.Error("a visit was written after Sync had failed")
	}
	if err := a.Close(); err == nil {
		t.Error("Close returns no error after a failed Sync")
	}
	if names := fileNames(t, a.cfg.Dir); len(names) != 1 || !strings.HasSuffix(names[0], ".open") {
		t.Fatalf("files %q, want the open one", names)
	}
	if n := len(closeAndRead(t, openArchive(t, Config{Dir: a.cfg.Dir}))); n != 3 {
		t.Errorf("%d records after OpenArchiveWriter, want 3", n)
	}
}

// OpenArchiveWriter refuses an invalid configuration, and makes no directory then.
func TestOpenRefuses(t *testing.T) {
	for _, cfg := range []Config{{}, {Dir: "x", FilePrefix: "a/b"}, {Dir: "x", MaxFileSize: -1}} {
		if a, err := OpenArchiveWriter(cfg); err == nil {
			t.Errorf("%+v was opened", cfg)
			a.Close()
		}
	}
	if slices.Contains(fileNames(t, "."), "x") {
		t.Error("a refused archive has made its directory")
	}
}

// BenchmarkWrite measures WriteVisit of a page of 20 KiB.
func BenchmarkWrite(b *testing.B) {
	page := strings.Repeat("<p class=text>lorem ipsum dolor sit amet <a href=/page/1>page</a></p>\n", 300)[:20<<10]
	v := newVisit(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n%s", len(page),
		page))
	v.MetadataFields = []Field{{"source", "link"}, {"referrer", "https://example.com/"}}
	a, err := OpenArchiveWriter(Config{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	defer a.Close()
	b.SetBytes(int64(len(page)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := a.WriteVisit(v); err != nil {
			b.Fatal(err)
		}
	}
}
