package sitemap

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// TestMemoryIsConstant: the memory for reading a file does not depend on its length, whichever part
// of it is long.
func TestMemoryIsConstant(t *testing.T) {
	for name, pieces := range map[string][3]string{
		"text":    {"<urlset><url><loc>", "xxxxxxxx", "</loc></url></urlset>"},
		"CDATA":   {"<urlset><url><loc><![CDATA[", "xxxxxxx>", "]]></loc></url></urlset>"},
		"comment": {"<urlset><!--", "------- ", "--></urlset>"},
		"blanks":  {"", "        ", "<urlset/>"},
		"line":    {"http://example.com/\n", "xxxxxxxx", ""},
	} {
		t.Run(name, func(t *testing.T) {
			const size = 4 << 20
			middle := &repeater{piece: pieces[1], left: size}
			r := io.MultiReader(strings.NewReader(pieces[0]), middle, strings.NewReader(pieces[2]))
			before := allocatedBytes()
			if _, err := readURLs(t, r, Options{}); err != nil {
				t.Fatal(err)
			}
			if got := allocatedBytes() - before; got > size/4 {
				t.Errorf("%d bytes allocated", got)
			}
		})
	}
}

// allocatedBytes returns the total number of bytes allocated so far.
func allocatedBytes() uint64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.TotalAlloc
}

// A repeater reads as a piece that is repeated until left bytes have been read.
type repeater struct {
	piece string
	left  int
}

func (r *repeater) Read(p []byte) (int, error) {
	if r.left <= 0 {
		return 0, io.EOF
	}
	n := 0
	for n+len(r.piece) <= len(p) && n < r.left {
		n += copy(p[n:], r.piece)
	}
	r.left -= n
	return n, nil
}

// TestLargestSitemap checks the heap that the largest sitemap of sitemaps.org takes: 50,000 URLs in
// 50 MiB.
func TestLargestSitemap(t *testing.T) {
	const maxHeap = 32 << 20
	for name, wrap := range map[string]func(*testing.T, io.Reader) io.Reader{
		"plain": func(_ *testing.T, r io.Reader) io.Reader { return r }, "gzip": gzipReader,
	} {
		t.Run(name, func(t *testing.T) {
			file := &sitemapGenerator{entries: 50_000, size: 50 << 20}
			r := wrap(t, file)
			runtime.GC()
			var stats runtime.MemStats
			runtime.ReadMemStats(&stats)
			before, peak, n := stats.HeapAlloc, uint64(0), 0
			err := Read(r, mustParseURL(t, sitemapURL), Options{}, func(Entry) error {
				if n++; n%500 == 0 {
					runtime.ReadMemStats(&stats)
					peak = max(peak, stats.HeapAlloc)
				}
				return nil
			})
			if err != nil || n != 50_000 || file.written != 50<<20 {
				t.Fatalf("%d entries of %d bytes, %v", n, file.written, err)
			}
			t.Logf("%.1f MiB of heap at most, %.1f MiB before", float64(peak)/(1<<20), float64(before)/(1<<20))
			if peak > maxHeap {
				t.Errorf("%d bytes of heap, more than %d", peak, maxHeap)
			}
		})
	}
}

// gzipReader returns a stream of r in gzip format.
func gzipReader(t *testing.T, r io.Reader) io.Reader {
	out, in := io.Pipe()
	var writing sync.WaitGroup
	writing.Go(func() {
		w, _ := gzip.NewWriterLevel(in, gzip.BestSpeed) // a valid level
		_, err := io.Copy(w, r)
		in.CloseWithError(cmp.Or(err, w.Close()))
	})
	t.Cleanup(func() {
		out.Close()
		writing.Wait()
	})
	return out
}

// A sitemapGenerator reads as a sitemap of a given number of entries that fills size bytes.
type sitemapGenerator struct {
	entries, size int

	n, written int // so far
	pending    bytes.Buffer
}

const (
	generatedHead = `<?xml version="1.0" encoding="UTF-8"?>` + "\n" +
		`<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">` + "\n"
	generatedFoot = "</urlset>"
)

func (g *sitemapGenerator) Read(p []byte) (int, error) {
	if g.pending.Len() == 0 && !g.writeNext() {
		return 0, io.EOF
	}
	n, err := g.pending.Read(p)
	g.written += n
	return n, err
}

// writeNext writes the next piece: the head, an entry or the foot.
func (g *sitemapGenerator) writeNext() bool {
	switch {
	case g.n == 0:
		g.pending.WriteString(generatedHead)
	case g.n <= g.entries:
		writeEntry(&g.pending, g.n, g.size/g.entries-len(generatedHead))
	case g.n == g.entries+1:
		io.CopyN(&g.pending, &repeater{piece: " ", left: g.size}, int64(g.size-g.written-len(generatedFoot)))
		g.pending.WriteString(generatedFoot)
	default:
		return false
	}
	g.n++
	return true
}

// writeEntry writes the i-th entry, padded to size bytes.
func writeEntry(w *bytes.Buffer, i, size int) {
	start := w.Len()
	fmt.Fprintf(w, "<url><loc>http://example.com/section/%d/page.html?x=%d&amp;y=2</loc>", i%100, i)
	w.WriteString("<lastmod>2024-05-06T07:08:09+00:00</lastmod><changefreq>weekly</changefreq><priority>0.8</priority>")
	const title, foot = "<image:image><image:title>%s</image:title></image:image>", "</url>\n"
	if n := size - (w.Len() - start) - len(title) - len(foot); n > 0 {
		text := strings.Repeat(fmt.Sprintf("%x ", i*i), n)[:n]
		fmt.Fprintf(w, title, text)
	}
	w.WriteString(foot)
}

func TestBombIsDefused(t *testing.T) {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	io.WriteString(w, "<urlset><url><loc>/1</loc></url>")
	io.Copy(w, &repeater{piece: "        ", left: 8 << 20})
	w.Close()
	got, err := readURLs(t, &b, Options{MaxBytes: 1 << 20})
	if len(got) != 1 || !errors.Is(err, ErrLimit) {
		t.Errorf("got %q, %v", got, err)
	}
}

// TestRatio: a small compressed file cannot cause much work, even within the limit of bytes, and an
// ordinary file that compresses well is read.
func TestRatio(t *testing.T) {
	for _, tt := range []struct {
		name, piece string
		size        int
		want        error
	}{
		{"nothing but blanks", "        ", 8 << 20, ErrLimit},
		{"blanks below the first MiB", "        ", 1 << 19, nil},
		{"an entry over and over", "<url><loc>http://example.com/a/rather/long/path</loc><lastmod>2024-05-06</lastmod></url>\n", 2 << 20, nil},
	} {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		io.WriteString(w, "<urlset><url><loc>/1</loc></url>")
		io.Copy(w, &repeater{piece: tt.piece, left: tt.size})
		io.WriteString(w, "</urlset>")
		w.Close()
		size := b.Len()
		got, err := readURLs(t, &b, Options{})
		if len(got) == 0 || !errors.Is(err, tt.want) {
			t.Errorf("%s, %d bytes: got %d entries, %v", tt.name, size, len(got), err)
		}
	}
}
