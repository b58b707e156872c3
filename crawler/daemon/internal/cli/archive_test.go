package cli

import (
	"bytes"
	"crypto/sha1"
	"encoding/base32"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/daemontest"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/sinks"
	"github.com/decorum-crawler/decorum/internal/testfile"
	"github.com/decorum-crawler/decorum/storage/warc"
)

// A warcRecord is a record of a WARC file and its block.
type warcRecord struct {
	warc.Header
	block string
}

// readArchive reads all WARC files in a directory. It fails unless all are closed and complete, with
// correct digests.
func readArchive(t *testing.T, dir string) []warcRecord {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	var all []warcRecord
	for _, name := range names {
		if filepath.Base(name) == sinks.WARCLockFile {
			continue
		}
		if !strings.HasSuffix(name, ".warc.gz") {
			t.Errorf("%s is left", name)
		}
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, readWARCFile(t, name, b)...)
	}
	return all
}

func readWARCFile(t *testing.T, name string, file []byte) []warcRecord {
	t.Helper()
	var all []warcRecord
	for r := warc.NewReader(bytes.NewReader(file)); ; {
		record, err := r.Next()
		if err == io.EOF {
			return all
		}
		var block []byte
		if err == nil {
			block, err = io.ReadAll(record.Block)
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		sum := sha1.Sum(block)
		if want := "sha1:" + base32.StdEncoding.EncodeToString(sum[:]); record.Header.Get("WARC-Block-Digest") != want {
			t.Errorf("%s: block digest %s, want %s", name, record.Header.Get("WARC-Block-Digest"), want)
		}
		all = append(all, warcRecord{record.Header, string(block)})
	}
}

// responseURLs returns the URLs of responses and revisits, sorted.
func responseURLs(records []warcRecord) []string {
	var urls []string
	for _, r := range records {
		if kind := r.Get("WARC-Type"); kind == warc.TypeResponse || kind == warc.TypeRevisit {
			urls = append(urls, r.Get("WARC-Target-URI"))
		}
	}
	slices.Sort(urls)
	return urls
}

// checkArchived checks that all of the given URLs are archived.
func checkArchived(t *testing.T, dir string, urls []string) {
	t.Helper()
	answers := responseURLs(readArchive(t, dir))
	for _, url := range urls {
		if _, ok := slices.BinarySearch(answers, url); !ok {
			t.Errorf("%s has a line of output, and is not archived", url)
		}
	}
}

// The archive has every exchange of a crawl, including robots.txt and sitemaps, with its metadata,
// and no other records.
func TestArchive(t *testing.T) {
	t.Parallel()
	v := daemontest.NewWebFixture(t, daemontest.ShopSite())
	dir := filepath.Join(v.Dir, "warc")
	runCommand(t, v.CrawlArgs("--warc", dir, "http://shop.example/")...).want(t, command.ExitDone, "pages: 5 (")
	records := readArchive(t, dir)
	var requested []string
	for _, x := range v.Web.Log() {
		requested = append(requested, x.URL)
	}
	slices.Sort(requested)
	if diff := cmp.Diff(requested, responseURLs(records)); diff != "" {
		t.Errorf("requests that the server saw (-), and answers that are archived (+)\n%s", diff)
	}
	lines := map[string]sinks.OutputRecord{}
	for _, r := range outputRecords(t, v) {
		lines[r.URL] = r
	}
	metadata := 0
	for _, r := range records {
		line, page := lines[r.Get("WARC-Target-URI")]
		if r.Get("WARC-Type") != warc.TypeMetadata || !page {
			continue
		}
		metadata++
		for _, want := range []string{"source: " + line.URLSource, "robots_file_sha256: " +
			line.RobotsVerdict.FileSHA256, "delay_required_ms: "} {
			if !strings.Contains(r.block, want) {
				t.Errorf("%s: metadata %q, want %q in it", line.URL, r.block, want)
			}
		}
		if r.Get("WARC-Date") != line.FetchedAt.Format("2006-01-02T15:04:05.000Z") {
			t.Errorf("%s: date %s, the line of output says %v", line.URL, r.Get("WARC-Date"), line.FetchedAt)
		}
	}
	if metadata != len(lines) {
		t.Errorf("metadata of %d pages, want %d", metadata, len(lines))
	}
	if info := records[0].block; !strings.Contains(info, "operator: mailto:bot@example.com\r\n") ||
		!strings.Contains(info, "http-header-user-agent: decorum/") || !strings.Contains(info, "robots: ") {
		t.Errorf("warcinfo %q", info)
	}
}

// outputRecords returns the records of the output file.
func outputRecords(t *testing.T, v *daemontest.WebFixture) []sinks.OutputRecord {
	t.Helper()
	return daemontest.ReadRecords(t, filepath.Join(v.DataDir(), datadir.OutputFile))
}

// unchangingSite returns a site of two pages that never change; one of them has a validator.
func unchangingSite() crawltest.Site {
	same := crawltest.ChangingPage{ResponseAfterChanges: func(int) crawltest.Response {
		return crawltest.HTML("<a href=/tagged>x</a>")
	}}
	tagged := crawltest.ChangingPage{SendETag: true, ResponseAfterChanges: func(int) crawltest.Response {
		return crawltest.HTML("tagged")
	}}
	return crawltest.Site{Host: "shop.example", Fallback: same.Respond,
		Pages: map[string]crawltest.PageFunc{"/tagged": tagged.Respond}}
}

// A revisited page that has not changed is archived as a revisit record, which names the response
// that has its body, after a restart too.
func TestArchiveOfRevisits(t *testing.T) {
	t.Parallel()
	v := daemontest.NewWebFixture(t, unchangingSite())
	dir := filepath.Join(v.Dir, "warc")
	project := testfile.Write(t, "p.yaml",
		"project: books\nagent: {contact: 'mailto:a@b.example'}\nrevisit: {mode: interval, every: 3s}\n")
	runCommand(t, v.CrawlArgs("-c", project, "--warc", dir, "http://shop.example/")...).want(t,
		command.ExitDone, "pages: 2 (")
	for range 2 {
		time.Sleep(3100 * time.Millisecond) // the pages are due again after three seconds
		runCommand(t, "crawl", "--resume", "--data", v.DataDir(), "--progress=none").want(t, command.ExitDone,
			"revisits: 2, unchanged (including sitemaps): 2")
	}
	first, profiles := map[string]string{}, map[string]int{}
	for _, r := range readArchive(t, dir) {
		url := r.Get("WARC-Target-URI")
		switch r.Get("WARC-Type") {
		case warc.TypeResponse:
			if first[url] != "" {
				t.Errorf("%s is archived whole twice", url)
			}
			first[url] = r.Get("WARC-Date") + " " + r.Get("WARC-Payload-Digest")
		case warc.TypeRevisit:
			profiles[url+" "+r.Get("WARC-Profile")]++
			if got := r.Get("WARC-Refers-To-Date") + " " + r.Get("WARC-Payload-Digest"); got != first[url] ||
				r.Get("WARC-Refers-To-Target-URI") != url {
				t.Errorf("%s refers to %q, want %q", url, got, first[url])
			}
			if !strings.HasSuffix(r.block, "\r\n\r\n") {
				t.Errorf("%s: a revisit with a body: %q", url, r.block)
			}
		}
	}
	if diff := cmp.Diff(map[string]int{
		"http://shop.example/ http://netpreserve.org/warc/1.1/revisit/identical-payload-digest":  2,
		"http://shop.example/tagged http://netpreserve.org/warc/1.1/revisit/server-not-modified": 2,
	}, profiles); diff != "" {
		t.Errorf("revisits (-want +got)\n%s", diff)
	}
	names, err := filepath.Glob(filepath.Join(dir, "books-*.warc.gz"))
	if err != nil || len(names) != 3 {
		t.Errorf("files %q (%v), want one of each run", names, err)
	}
}

// A crawl refuses an archive directory in which another crawl writes.
func TestArchiveInUse(t *testing.T) {
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	lock, err := datadir.LockDirectory(root, sinks.WARCLockFile, "", "", "")
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	v := daemontest.NewWebFixture(t, daemontest.ShopSite())
	runCommand(t, v.CrawlArgs("--warc", dir, "http://shop.example/")...).want(t, command.ExitFailed,
		"in use by process ", "name another directory with --warc")
}
