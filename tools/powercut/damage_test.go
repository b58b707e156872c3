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

// TestDamages: a file is damaged while the crawl is stopped. The crawl ends with an
// error, or goes on; what it loses it says. No URL is requested that the web does not
// have, and a ledger that is right has all requests.
func TestDamages(t *testing.T) {
	for i := range *damagedFiles {
		seed := *firstSeed + uint64(i)
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			testDamage(t, seed)
		})
	}
}

// damagedPrefixes lists the files to damage, one at a time. Files of the state come most often:
// damage in them may change what the crawl does.
var damagedPrefixes = []string{"frontier.db", "frontier.db", "frontier.db", "robots.db", "robots.db", "ledger-", "pages.jsonl"}

func testDamage(t *testing.T, seed uint64) {
	m, rnd := newMachine(t), rand.New(rand.NewPCG(seed, 11))
	defer m.logRepeatFlags(fmt.Sprintf("-run TestDamages -damages 1 -seed %d", seed))
	m.runCrawl(time.Duration(2500+rnd.IntN(2000)) * time.Millisecond)
	m.powerOff()
	name, n := m.chooseFile(damagedPrefixes[rnd.IntN(len(damagedPrefixes))], rnd)
	if n == nil {
		t.Skip("the crawl was killed before it had the file")
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

// chooseFile returns a file whose name begins so.
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

// damageContent changes some bytes of content that are not zero, or a block with such bytes.
func damageContent(b []byte, rnd *rand.Rand) (damaged []byte, kind string) {
	if rnd.IntN(3) == 0 && damageURL(b, rnd) {
		return b, "a letter of a URL"
	}
	var nonZeroBlocks []int // blocks with content
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
		for range len(block) { // a byte that means something
			if block[i] != 0 {
				break
			}
			i = (i + 1) % len(block)
		}
		block[i] ^= 1 << rnd.IntN(8)
	}
	return b, "some bits"
}

// damageURL changes the first letter of a segment of a path, if there is one: what is
// read is well-formed then, and only a checksum can tell.
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

// checkAfterDamage checks what a crawl made of a damaged file.
func (m *machine) checkAfterDamage(name string, r commandResult) {
	m.t.Helper()
	m.checkRequestedURLs()
	if r.exitCode != 0 {
		return
	}
	switch file := path.Base(name); {
	case strings.HasPrefix(file, "ledger-"):
		// Its end may be cut off, if it was not on the disk for certain.
		if v := m.runCommand(0, "ledger", "verify", "--data", m.dataDir()); v.exitCode == 0 {
			m.checkLedgerRecords()
		}
	case file == "pages.jsonl":
		// What was written is not read again, but the crawl went on.
	default:
		if missing := m.missingPages(); len(missing) > 0 && strings.TrimSpace(r.stderr) == "" {
			m.t.Errorf("%d pages are lost without a word: %q", len(missing), missing)
		}
	}
}

// checkRequestedURLs checks that no URL was requested that is neither reachable nor asked
// for by a crawl of itself: it would be one that a damage has made.
func (m *machine) checkRequestedURLs() {
	m.t.Helper()
	known := map[string]bool{}
	for _, url := range m.web.ReachablePages() {
		known[url] = true
	}
	for _, x := range m.web.Log() {
		own := strings.HasSuffix(x.URL, ".txt") || strings.HasSuffix(x.URL, "/sitemap.xml")
		if !own && !known[x.URL] {
			m.t.Errorf("%s was requested, and is on no page", x.URL)
		}
	}
}
