package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/daemontest"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/internal/testfile"
)

// Each distinct body is stored once, under the SHA-256 in the records of its pages.
func TestBodies(t *testing.T) {
	t.Parallel()
	v := daemontest.NewWebFixture(t, daemontest.ShopSite())
	dir := filepath.Join(v.DataDir(), datadir.BodiesDir)
	runCommand(t, v.CrawlArgs("--bodies", "http://shop.example/")...).want(t, command.ExitDone, "pages: 5 (",
		"\nbodies → "+dir+"\n")
	want := map[string]int{}
	for _, r := range outputRecords(t, v) {
		if r.SHA256 != "" {
			want[filepath.Join(dir, r.SHA256[:2], r.SHA256[2:4], r.SHA256)] = r.Bytes
		}
	}
	got := map[string]int{}
	err := filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		got[name] = int(info.Size())
		return err
	})
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("bodies (-want +got) %v\n%s", err, diff)
	}
}

// With --outlinks a line lists the links of its page, unless the site does not permit the use of the page.
func TestOutlinks(t *testing.T) {
	t.Parallel()
	site := daemontest.ShopSite()
	home := site.Pages["/"](crawltest.PageRequest{})
	home.Header = home.Header.Clone()
	home.Header.Set("X-Robots-Tag", "noai")
	site.Pages["/closed"] = crawltest.StaticPage(home)
	v := daemontest.NewWebFixture(t, site)
	project := testfile.Write(t, "p.yaml",
		"agent: {contact: 'mailto:a@b.example'}\nscope: {max_depth: 0}\nrobots: {purpose: [ai-train]}\n")
	runCommand(t, v.CrawlArgs("-c", project, "--outlinks", "http://shop.example/", "http://shop.example/a",
		"http://shop.example/missing", "http://shop.example/closed")...).want(t, command.ExitDone, "pages: 4 (")
	got := map[string][]string{}
	for _, r := range outputRecords(t, v) {
		got[r.URL] = r.Outlinks
		if wantCount := len(r.Outlinks); r.LinkCount != wantCount && r.URL != "http://shop.example/closed" {
			t.Errorf("%s: links %d, outlinks %d", r.URL, r.LinkCount, wantCount)
		}
	}
	want := map[string][]string{
		"http://shop.example/": {"http://shop.example/a", "http://shop.example/b?x=1&y=2", "http://shop.example/till",
			"http://shop.example/old", "http://elsewhere.example/"},
		"http://shop.example/a":       {"http://shop.example/"},
		"http://shop.example/missing": nil,
		"http://shop.example/closed":  nil,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("outlinks (-want +got)\n%s", diff)
	}
}
