package extract

import "testing"

func BenchmarkScan(b *testing.B) {
	page, home := samplePage(), mustParse(b, "http://example.com/dir/page")
	var s Scanner
	b.ReportAllocs()
	b.SetBytes(int64(len(page)))
	for b.Loop() {
		if doc := s.ScanPage(page, utf8HTML, home); len(doc.Links) != 51 {
			b.Fatal(len(doc.Links))
		}
	}
}

// BenchmarkNextTag measures the scanner without URLs: the cost of finding the tags.
func BenchmarkNextTag(b *testing.B) {
	page := samplePage()
	b.ReportAllocs()
	b.SetBytes(int64(len(page)))
	for b.Loop() {
		t := tokenizer{input: page}
		var found attributes
		for {
			name, end, ok := t.nextTag()
			if !ok {
				break
			}
			if e := elementKindByName(name); e == unknownElement || end {
				t.readAttributes(nil)
				continue
			}
			found = attributes{}
			t.readAttributes(&found)
		}
	}
}

// BenchmarkTokenizer does what ScanPage does with the tokenizer of x/net/html, for comparison.
func BenchmarkTokenizer(b *testing.B) {
	page, home := samplePage(), mustParse(b, "http://example.com/dir/page")
	b.ReportAllocs()
	b.SetBytes(int64(len(page)))
	for b.Loop() {
		var o oracle
		o.read(page)
		if links := o.links(home); len(links) != 51 {
			b.Fatal(len(links))
		}
	}
}
