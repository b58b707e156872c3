package powercut

import (
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/tools/powercut/disk"
)

// TestDamages: a file is damaged while the crawl is stopped. The resumed crawl ends with an error,
// or continues and reports what it has lost. It requests no URL that is on no page of the web, and
// a ledger that verifies has all requests.
func TestDamages(t *testing.T) {
	for i := range *damagedFiles {
		seed := *firstSeed + uint64(i)
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			testDamage(t, seed)
		})
	}
}

// damagedPrefixes lists the prefixes of the files to damage, one in each test. Files of the state
// are in the list more often, because their damage may change what the crawl does.
var damagedPrefixes = []string{
	"frontier.db", "frontier.db", "frontier.db", "robots.db", "robots.db", "ledger-", "pages.jsonl",
}

// testDamage kills a crawl, damages a file, and resumes the crawl.
func testDamage(t *testing.T, seed uint64) {
	m, rnd := newMachine(t), rand.New(rand.NewPCG(seed, 11))
	defer m.logRepeatFlags(fmt.Sprintf("-run TestDamages -damages 1 -seed %d", seed))
	m.runCrawl(time.Duration(2500+rnd.IntN(2000)) * time.Millisecond)
	m.powerOff()
	name, n := m.chooseFile(damagedPrefixes[rnd.IntN(len(damagedPrefixes))], rnd)
	if n == nil {
		t.Skip("the crawl was killed before it created the file")
	}
	kind := ""
	m.disk.DamageFile(n, func(b []byte) []byte { b, kind = damageContent(b, rnd); return b })
	if err := m.powerOn(); err != nil {
		t.Fatal(err)
	}
	r := m.runCrawl(0)
	t.Logf("%s of %s: exit code %d: %s", kind, name, r.exitCode, r.lastLine())
	r.checkEnd(t)
	m.checkAfterDamage(name, r)
}

// chooseFile returns a random file whose name begins with prefix, or nil if the disk has no such
// file.
func (m *machine) chooseFile(prefix string, rnd *rand.Rand) (string, *disk.Node) {
	files := map[string]*disk.Node{}
	m.disk.WalkFiles(func(name string, n *disk.Node) {
		if strings.HasPrefix(path.Base(name), prefix) && m.disk.FileSize(n) > 0 {
			files[name] = n
		}
	})
	if len(files) == 0 {
		return "", nil
	}
	var names []string
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	name := names[rnd.IntN(len(names))]
	return name, files[name]
}

// damageContent damages some bytes of content, or a block of it, and returns the content and the
// kind of damage. It chooses blocks with bytes other than zero.
func damageContent(b []byte, rnd *rand.Rand) (damaged []byte, kind string) {
	if rnd.IntN(3) == 0 && damageURL(b, rnd) {
		return b, "a letter of a URL"
	}
	var nonZeroBlocks []int // blocks with bytes other than zero
	for i := 0; i < len(b); i += disk.BlockSize {
		if slices.ContainsFunc(b[i:min(i+disk.BlockSize, len(b))], func(c byte) bool { return c != 0 }) {
			nonZeroBlocks = append(nonZeroBlocks, i)
		}
	}
	at := nonZeroBlocks[rnd.IntN(len(nonZeroBlocks))]
	block := b[at:min(at+disk.BlockSize, len(b))]
	switch rnd.IntN(5) {
	case 0:
		clear(block)
		return b, "a block of zeros"
	case 1:
		for i := range block {
			block[i] = byte(rnd.Uint32())
		}
		return b, "a block of random bytes"
	case 2:
		other := nonZeroBlocks[rnd.IntN(len(nonZeroBlocks))]
		copy(block, b[other:min(other+disk.BlockSize, len(b))])
		return b, "a block in the place of another"
	case 3:
		return b[:at+len(block)/2], "the loss of the end"
	}
	for range 1 + rnd.IntN(3) {
		i := rnd.IntN(len(block))
		for range len(block) { // find a byte other than zero
			if block[i] != 0 {
				break
			}
			i = (i + 1) % len(block)
		}
		block[i] ^= 1 << rnd.IntN(8)
	}
	return b, "some bits"
}

// damageURL changes the first letter of a path segment in b, and reports whether b has one. The
// damaged record is well-formed, so that only a checksum can detect the damage.
func damageURL(b []byte, rnd *rand.Rand) bool {
	var letters []int
	for i := 1; i < len(b); i++ {
		if b[i-1] == '/' && ('0' <= b[i] && b[i] <= '9' || 'a' <= b[i] && b[i] <= 'z') {
			letters = append(letters, i)
		}
	}
	if len(letters) == 0 {
		return false
	}
	b[letters[rnd.IntN(len(letters))]] ^= 1 // another letter, or another digit
	return true
}

// checkAfterDamage checks a crawl that was resumed with a damaged file.
func (m *machine) checkAfterDamage(name string, r commandResult) {
	m.t.Helper()
	m.checkRequestedURLs()
	if r.exitCode != 0 {
		return
	}
	switch file := path.Base(name); {
	case strings.HasPrefix(file, "ledger-"):
		// The crawl may have cut off the unsynced end of the ledger.
		if v := m.runCommand(0, "ledger", "verify", "--data", m.dataDir()); v.exitCode == 0 {
			m.checkLedgerRecords()
		}
	case file == "pages.jsonl":
		// The crawl does not read its output again.
	default:
		if missing := m.missingPages(); len(missing) > 0 && strings.TrimSpace(r.stderr) == "" {
			m.t.Errorf("%d pages are missing, and no message says why: %q", len(missing), missing)
		}
	}
}

// checkRequestedURLs checks that the crawl requested only reachable pages and the files that every
// crawl requests. Any other URL would come from the damage.
func (m *machine) checkRequestedURLs() {
	m.t.Helper()
	known := map[string]bool{}
	for _, url := range m.web.ReachablePages() {
		known[url] = true
	}
	for _, x := range m.web.Log() {
		own := strings.HasSuffix(x.URL, ".txt") || strings.HasSuffix(x.URL, "/sitemap.xml")
		if !own && !known[x.URL] {
			m.t.Errorf("%s was requested, but no page links to it", x.URL)
		}
	}
}
